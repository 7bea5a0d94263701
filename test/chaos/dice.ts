/** Random choices that can be had again. */
export interface Dice {
  /** From 0 to 1, without 1. */
  next(): number;
  /** From `least` to `most`, both possible. */
  int(least: number, most: number): number;
  chance(share: number): boolean;
  pick<T>(list: readonly T[]): T;
  shuffled<T>(list: readonly T[]): T[];
}

/**
 * Dice of their own for each purpose, all from one seed: what one part of the bench draws, when it comes to it, changes
 * nothing for another. Mulberry32, by Tommy Ettinger (public domain).
 */
export function diceFor(seed: number, purpose: string): Dice {
  let state = hash(`${seed} ${purpose}`);
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x = (x + Math.imul(x ^ (x >>> 7), x | 61)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (least: number, most: number) => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    int,
    chance: (share) => next() < share,
    pick: (list) => list[int(0, list.length - 1)] as never,
    shuffled(list) {
      const order = list.map((value) => ({ value, place: next() }));
      return order.sort((a, b) => a.place - b.place).map(({ value }) => value);
    },
  };
}

/** FNV-1a. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (const char of text) h = Math.imul(h ^ char.charCodeAt(0), 0x01000193);
  return h >>> 0;
}
