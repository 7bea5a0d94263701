import { RETAINED, type RetainMs } from '../db/reads/families.ts';
import type { Db } from '../db/types.ts';
import { pruneFinished } from '../db/writes/prune.ts';

const BATCH = 500;
/** Of one pass and state: what is left waits for the next, so that a backlog never holds up the other passes. */
const MAX_BATCHES = 10;
/** A pass goes on where the last one has stopped, but begins anew this often: somebody may have held a row of before. */
const ANEW_MS = 10_000;

/** Removes finished jobs without relatives, the oldest first. */
export function createSinglePruner(db: Db, retainMs: RetainMs): { pass(): Promise<{ pruned: number; more: boolean }> } {
  const places = new Map<string, { from: string; since: number }>();

  /** Returns how many it removed, and whether there are more. */
  async function passOf(state: (typeof RETAINED)[number][0], ms: number): Promise<{ pruned: number; more: boolean }> {
    const now = performance.now();
    const last = places.get(state);
    const place = last && now - last.since < ANEW_MS ? last : { from: '-infinity', since: now };
    let pruned = 0;
    for (let batch = 0; batch < MAX_BATCHES; batch++) {
      const done = await pruneFinished(db, state, ms, BATCH, place.from);
      pruned += done.pruned;
      const stays = done.pruned === 0 && done.last === place.from;
      place.from = done.last ?? place.from;
      // Or a whole batch of one moment is held by somebody: then the next pass looks again.
      if (done.seen < BATCH || stays) {
        places.delete(state);
        return { pruned, more: false };
      }
    }
    places.set(state, place);
    return { pruned, more: true };
  }

  return {
    async pass() {
      const total = { pruned: 0, more: false };
      for (const [state, setting] of RETAINED) {
        const { pruned, more } = await passOf(state, retainMs[setting]);
        total.pruned += pruned;
        total.more ||= more;
      }
      return total;
    },
  };
}
