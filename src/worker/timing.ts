import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Runs `fn` outside the caller's async context. Timers and loops that user code happens to start (a progress report
 * inside an open transaction, a hint that arrives in a request) must not carry that context on: a query made in the
 * context of a transaction that is long over would be refused.
 */
export const detached: <T>(fn: () => T) => T = AsyncLocalStorage.snapshot();

/** Milliseconds of a clock that never goes back and knows no time of day; the same in every thread of a process. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

/** `ms`, lengthened by up to `share`: many processes started together do not stay in step. Never shortened. */
export function jittered(ms: number, share = 0.1): number {
  return ms * (1 + Math.random() * share);
}

// Node fires a longer timer at once.
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Calls `fn` once after `ms`, outside the caller's context. Returns a function that prevents it; also after it fired. */
export function after(ms: number, fn: () => void): () => void {
  return detached(() => {
    let timer: NodeJS.Timeout;
    const arm = (left: number): void => {
      timer = left > MAX_TIMER_MS ? setTimeout(() => arm(left - MAX_TIMER_MS), MAX_TIMER_MS) : setTimeout(fn, left);
    };
    arm(Math.max(0, ms));
    return () => clearTimeout(timer);
  });
}

/** Calls `fn` in the next turn of the event loop, outside the caller's context. Returns a function that prevents it. */
export function soon(fn: () => void): () => void {
  return detached(() => {
    const immediate = setImmediate(fn);
    return () => clearImmediate(immediate);
  });
}

/** Resolves after `ms`, or at once when `signal` fires. Never rejects: the caller looks at the signal. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      prevent();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const prevent = after(ms, done);
    signal?.addEventListener('abort', done, { once: true });
  });
}

/** Waits for `promise`, at most `ms`; false when it took longer. Never rejects. */
export async function settledWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let prevent = (): void => {};
  const late = new Promise<boolean>((resolve) => {
    prevent = after(ms, () => resolve(false));
  });
  const settled = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, late]).finally(() => prevent());
}

/** `work`, or a rejection with the signal's reason as soon as that fires; then the result is dropped. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** A moment that can be brought forward, never put off. */
export class Deadline {
  #reach: () => void = () => {};
  /** Resolves when the moment is reached. */
  readonly reached = new Promise<void>((resolve) => {
    this.#reach = resolve;
  });
  #at = Number.POSITIVE_INFINITY;
  #prevent: () => void = () => {};

  /** Sets it to `ms` from now, unless it is sooner already. */
  within(ms: number): void {
    const at = monotonicMs() + ms;
    if (at >= this.#at) return;
    this.#at = at;
    this.#prevent();
    this.#prevent = after(ms, () => this.#reach());
  }

  /** It is of no interest any more. */
  cancel(): void {
    this.#prevent();
  }
}
