import { Unavailable } from '../core/errors.ts';
import { wait } from './timing.ts';
import type { Trouble } from './trouble.ts';

const FIRST_WAIT_MS = 50;
const MAX_WAIT_MS = 2_000;

/**
 * Repeats `call` while the store is away. Only for calls that may be repeated after an answer was lost, and that reject and
 * never throw.
 * @param goOn asked before each repeat; when it says no, the last error is thrown
 * @throws whatever `call` throws that is not Unavailable, at once
 */
export function whileUnavailable<T>(call: () => Promise<T>, trouble: Trouble, goOn: () => boolean): Promise<T> {
  const done = (value: T): T => {
    trouble.ok();
    return value;
  };
  return call().then(done, (error) => again(error, call, trouble, goOn).then(done));
}

async function again<T>(first: unknown, call: () => Promise<T>, trouble: Trouble, goOn: () => boolean): Promise<T> {
  let error = first;
  for (let delay = FIRST_WAIT_MS; ; delay = Math.min(MAX_WAIT_MS, delay * 2)) {
    if (!(error instanceof Unavailable)) throw error;
    trouble.failed(error);
    if (!goOn()) throw error;
    await wait(delay * (0.75 + Math.random() * 0.25));
    if (!goOn()) throw error;
    try {
      return await call();
    } catch (next) {
      error = next;
    }
  }
}
