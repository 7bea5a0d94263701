/** Wait before the n-th try (0, 1, …): doubling from 200 ms, capped at 10 s, half of it random, so that many clients spread. */
export function retryWaitMs(n: number): number {
  return Math.min(10_000, 200 * 2 ** Math.min(n, 10)) * (0.5 + Math.random() / 2);
}

/** Resolves after `ms`. @throws the signal's reason when it fires before */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
