import { familyCandidates, prunableFamilies, RETAINED, type RetainMs } from '../db/reads/families.ts';
import type { Db } from '../db/types.ts';
import { pruneFamilies } from '../db/writes/prune-families.ts';

const BATCH = 200;
const START = { finishedAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' };

/**
 * Removes jobs with relatives, a family as one. Each pass goes on behind the last one's place and begins anew at the end, so
 * that old families which something keeps do not hold up the others.
 */
export function createFamilyPruner(db: Db, retainMs: RetainMs): { pass(): Promise<number> } {
  const places = new Map<string, typeof START>();

  async function batch(state: (typeof RETAINED)[number][0], ms: number): Promise<number> {
    const found = await familyCandidates(db, state, ms, places.get(state) ?? START, BATCH);
    const last = found.at(-1);
    places.set(state, last && found.length === BATCH ? { finishedAt: last.finishedAt, id: last.id } : START);
    const roots = [...new Map(found.map((job) => [job.family, job.id])).values()];
    if (roots.length === 0) return 0;
    const members = onceEach(await prunableFamilies(db, roots, retainMs));
    return members.length === 0 ? 0 : pruneFamilies(db, members, retainMs);
  }

  return {
    async pass() {
      let pruned = 0;
      for (const [state, setting] of RETAINED) pruned += await batch(state, retainMs[setting]);
      return pruned;
    },
  };
}

/** A family that was found from two of its members is kept once. */
function onceEach<M extends { root: string; id: string }>(members: readonly M[]): M[] {
  const owner = new Map<string, string>();
  const twice = new Set<string>();
  for (const { root, id } of members) {
    const first = owner.get(id);
    if (first === undefined) owner.set(id, root);
    else if (first !== root) twice.add(root);
  }
  return members.filter(({ root }) => !twice.has(root));
}
