import { LeaseLost } from '../core/errors.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { checkpointByKey } from '../db/reads/checkpoint-rows.ts';
import type { Database, Executor } from '../db/types.ts';
import { type CheckpointInput, saveCheckpoints } from '../db/writes/checkpoints.ts';
import { type Announcer, announce } from './commit.ts';
import type { CheckpointWrite, EngineOptions, ExecutionEngine } from './types.ts';

/** Longest a user's transaction may stay open: its batch would hold a connection and, embedded, everybody. */
const USER_TRANSACTION_MS = 30_000;

/** Transactions of handlers, ended by the checkpoint that commits with them. */
export function createUserTransactions(
  database: Pick<Database, 'kind' | 'work'>,
  channel: Announcer,
  { leaseMs }: Pick<EngineOptions, 'leaseMs'>,
): Pick<ExecutionEngine, 'transaction'> {
  const db = database.work;
  return {
    async transaction(jobId, attempt, fn) {
      let write: CheckpointWrite | undefined;
      try {
        const rows = await db.transaction(
          async (tx) => {
            write = await fn(tx);
            // Only COMMIT follows the fence; ahead of it on the same connection this takes no time of its own.
            const limit = database.kind === 'postgres' ? limitIdle(tx, leaseMs) : undefined;
            // The fence comes last, so that the job's row is locked for microseconds and not for the length of `fn`.
            const existing = write.kind === 'STEP' ? 'refuse' : 'advance';
            const saved = await saveCheckpoints(tx, [checkpointInput(write)], existing);
            await limit;
            if (saved.length === 0) throw new LeaseLost(jobId, attempt);
            // The commit of an earlier try, whose answer was lost, came after all: these writes are its repetition.
            if (saved.some((row) => !row.saved)) throw new AlreadySaved();
            return saved;
          },
          { timeoutMs: USER_TRANSACTION_MS },
        );
        announce(channel, rows);
        return { data: JSON.parse(write?.data ?? 'null'), existed: false };
      } catch (error) {
        const done = error instanceof AlreadySaved || isUniqueViolation(error, 'checkpoints_job_id_epoch_key_pk');
        if (write && done) return savedBefore(db, write);
        throw error;
      }
    },
  };
}

/**
 * Ends this transaction when it does nothing for longer than a lease: a handler may think in it, but behind the fence only
 * COMMIT follows. To be sent ahead of the fence, and to be awaited behind it: so it takes no time of its own.
 */
function limitIdle(tx: Executor, leaseMs: number): Promise<unknown> {
  const limit = tx.query(`select set_config('idle_in_transaction_session_timeout', $1, true)`, [`${leaseMs}ms`]);
  // When this fails, so does the statement behind it, which is waited for first.
  limit.catch(() => {});
  return limit;
}

/** Rolls a user's transaction back; never leaves this file. */
class AlreadySaved extends Error {}

/** What an earlier call saved under the key. */
export async function savedBefore(executor: Executor, write: { jobId: string; epoch: number; key: string }) {
  const row = await checkpointByKey(executor, write.jobId, write.epoch, write.key);
  return { data: row?.data ?? null, existed: true };
}

/** The stored form of a checkpoint. */
export function checkpointInput(write: CheckpointWrite): CheckpointInput {
  return {
    jobId: write.jobId,
    attempt: write.attempt,
    key: write.key,
    kind: write.kind,
    data: write.data,
    processed: write.processed ?? null,
    succeeded: write.succeeded ?? null,
    failed: write.failed ?? null,
    errorSamples: write.errorSamples ? JSON.stringify(write.errorSamples) : null,
    progress: write.progress ? JSON.stringify(write.progress) : null,
  };
}
