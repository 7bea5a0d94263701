import { Unavailable } from '../core/errors.ts';
import { newUuid } from '../core/ids.ts';
import type { Logger } from '../core/log.ts';
import type { ExecutionEngine } from '../engine/types.ts';
import { monotonicMs, orAborted, wait } from './timing.ts';
import { Trouble } from './trouble.ts';

export interface RegistrationParts {
  execution: Pick<ExecutionEngine, 'registerWorker'>;
  worker: Omit<Parameters<ExecutionEngine['registerWorker']>[0], 'id'>;
  /** Ends it. */
  signal: AbortSignal;
  /** Whether to try again after whatever error, or only while the store is away. */
  persist: boolean;
  log: Logger;
  onError: (error: unknown) => void;
}

/**
 * Makes a worker known, however long the store is away. Resolves with the id under which it is known and when that was
 * sent, or with null when `signal` fired first.
 * @param firstId of the first try; a repeat takes a new one, since it cannot know since when the former's lease counts
 * @throws what the store throws that is no absence, such as IncompatibleDatabase, unless `persist`
 */
export async function register(
  firstId: string,
  { execution, worker, signal, persist, log, onError }: RegistrationParts,
): Promise<{ workerId: string; sentAt: number } | null> {
  const trouble = new Trouble({ log, doing: 'register the worker', onError });
  for (let workerId = firstId; !signal.aborted; workerId = newUuid()) {
    const sentAt = monotonicMs();
    try {
      await orAborted(execution.registerWorker({ id: workerId, ...worker }), signal);
      trouble.ok();
      return { workerId, sentAt };
    } catch (error) {
      if (signal.aborted) break;
      if (!persist && !(error instanceof Unavailable)) throw error;
      await wait(trouble.failed(error), signal);
    }
  }
  return null;
}
