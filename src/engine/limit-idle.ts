import type { Executor } from '../db/types.ts';

/**
 * Ends this transaction when it does nothing for longer than a lease, on Postgres. A process that is frozen, or cut off,
 * between two statements would hold its locks for longer, and with them whoever needs the rows. To be sent ahead of the
 * statement that locks, and to be awaited behind it: so it takes no time of its own.
 */
export function limitIdle(tx: Executor, leaseMs: number): Promise<unknown> {
  const limit = tx.query(`select set_config('idle_in_transaction_session_timeout', $1, true)`, [`${leaseMs}ms`]);
  // When this fails, so does the statement behind it, which is waited for first.
  limit.catch(() => {});
  return limit;
}
