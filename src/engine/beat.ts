import type { Executor } from '../db/types.ts';
import { beat } from '../db/writes/workers.ts';
import type { BeatAnswer, BeatStatus } from './types.ts';

/** One beat: renews the worker's lease and reads what it owns. Needs nothing of the engine, so that a thread can do it. */
export async function sendBeat(db: Executor, workerId: string, status: BeatStatus): Promise<BeatAnswer> {
  const { hung = false } = status;
  const rows = await beat(db, workerId, { ...status, hung });
  return {
    alive: rows.length > 0 && !hung,
    jobs: rows.flatMap((row) =>
      row.jobId === null || row.attempt === null
        ? []
        : {
            jobId: row.jobId,
            attempt: row.attempt,
            cancel: row.cancelRequested ? { by: row.cancelRequestedBy, reason: row.cancelReason } : null,
          },
    ),
  };
}
