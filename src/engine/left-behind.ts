import { publicId } from '../core/ids.ts';
import { leftBehind } from '../db/reads/left-behind.ts';
import { cancel } from '../db/transitions/cancel.ts';
import type { Executor } from '../db/types.ts';
import type { ChangedRow } from './commit.ts';

/**
 * Cancels the unfinished children whose checkpoints a retry has dropped: their parents submit new ones, and both would run.
 * In the transaction of the retry.
 */
export async function cancelLeftBehind(tx: Executor, retried: readonly string[], actor: string): Promise<ChangedRow[]> {
  const byParent = new Map<string, string[]>();
  for (const { id, parent } of await leftBehind(tx, retried))
    byParent.set(parent, [...(byParent.get(parent) ?? []), id]);
  const rows: ChangedRow[] = [];
  for (const [parent, ids] of byParent) {
    const reason = `its parent ${publicId('Job', parent)} submits its children anew`;
    rows.push(...(await cancel(tx, ids, { tenant: null, actor, reason, expectedRun: null, cascade: true })));
  }
  return rows;
}
