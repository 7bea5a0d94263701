import { RequestError } from '../client/index.ts';

const RETRY_MS = 1_000;

/** Reads until the service answers. @throws what it refuses, and the signal's reason */
export async function readInsistently<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      const value = await read();
      signal.throwIfAborted();
      return value;
    } catch (error) {
      if (!(error instanceof RequestError) || !error.isUnavailable) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS * (0.75 + Math.random() / 2)));
  }
}

/**
 * `again` runs `read`, one at a time: asked for while one runs, it runs once more after it, however often that was. `failed`
 * rejects with the first error.
 */
export function oneAtATime(read: () => Promise<void>): { again(): void; failed: Promise<never> } {
  let isRunning = false;
  let isWanted = false;
  let fail: (error: unknown) => void;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  // Whoever does not wait for it is gone.
  failed.catch(() => {});

  async function run(): Promise<void> {
    isRunning = true;
    while (isWanted) {
      isWanted = false;
      await read();
    }
    isRunning = false;
  }

  return {
    again() {
      isWanted = true;
      if (!isRunning) run().catch((error: unknown) => fail(error));
    },
    failed,
  };
}

/** The newer one of two states of the same thing. */
export function newer<T extends { version: number }>(a: T, b: T | undefined): T {
  return b && b.version > a.version ? b : a;
}
