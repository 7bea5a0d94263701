import { eventually } from '../support/eventually.ts';
import type { Backlog } from './cluster/backlog.ts';
import type { Load } from './load/load.ts';
import { LEASE_MS, LONGEST_MS } from './settings.ts';

/** After the faults have stopped nothing is stuck for longer than this (P2). */
const QUIET_MS = 3 * LEASE_MS + LONGEST_MS;
/** A busy machine may need longer for what has piled up, as long as jobs go on ending. */
const MOST_MS = 60_000;

/**
 * Waits until clients are done and every job has ended, or none has ended for as long as promised. Gives the milliseconds
 * that it took; whether something is stuck shows in the history.
 */
export async function awaitEnds(backlog: Backlog, load: Load): Promise<number> {
  const begin = performance.now();
  let [left, since] = [Number.POSITIVE_INFINITY, begin];
  await eventually(
    async () => {
      const now = load.underWay + (await backlog.read());
      if (now === 0) return;
      if (now < left) [left, since] = [now, performance.now()];
      if (performance.now() - since < QUIET_MS) throw new Error('not yet');
    },
    { timeoutMs: MOST_MS, intervalMs: 100 },
  ).catch(() => {});
  load.giveUp();
  return performance.now() - begin;
}
