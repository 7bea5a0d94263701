import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Repeats `assertion` until it passes and gives its value; after the time the last failure is thrown. For what happens
 * in another process or thread; there is no fixed sleep in a test.
 */
export async function eventually<T>(
  assertion: () => T | Promise<T>,
  { timeoutMs = 10_000, intervalMs = 20 }: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<T> {
  for (const until = performance.now() + timeoutMs; ; ) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() >= until) throw error;
    }
    await sleep(intervalMs);
  }
}

export interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** A promise that the test settles, to hold something at a point and let it go on. */
export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((res, rej) => {
    resolve = res;
    reject = rej;
  });
  return { promise, resolve, reject };
}

/** Rejects when `promise` is not settled in time: a hang becomes a failure with a name. */
export async function within<T>(ms: number, promise: Promise<T>, what = 'it'): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not happen within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
