import type { Command } from './action.ts';

/**
 * The commands that are needed to fail: one after the other is left out, or made plain, as long as what is left still
 * fails. What fast-check has found small is a list of pieces that belong together; this takes the pieces apart.
 */
export async function smallest(
  commands: readonly Command[],
  fails: (commands: readonly Command[]) => Promise<boolean>,
): Promise<readonly Command[]> {
  let best = commands;
  for (let again = true; again; ) {
    again = false;
    for (let i = best.length - 1; i >= 0; i--) {
      const without = best.filter((_, j) => j !== i);
      const plain = best.map((c, j): Command => (j === i ? { ...c, delivery: 'once' } : c));
      for (const candidate of best[i]?.delivery === 'once' ? [without] : [without, plain]) {
        if (!(await fails(candidate))) continue;
        best = candidate;
        again = true;
        break;
      }
    }
  }
  return best;
}
