/**
 * Random numbers that can be had again: the seed is printed, and `WAYMARK_TEST_SEED` sets it. Mulberry32, by Tommy
 * Ettinger (public domain): good enough to shuffle, and a number of 32 bits is easy to type.
 */
export function seededRandom(): () => number {
  const seed = Number(process.env.WAYMARK_TEST_SEED ?? Math.floor(Math.random() * 2 ** 32)) >>> 0;
  console.info(`seed: ${seed} (repeat with WAYMARK_TEST_SEED=${seed})`);
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x = (x + Math.imul(x ^ (x >>> 7), x | 61)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}
