/** The seed of a trial: printed, and set by `WAYMARK_TEST_SEED`; else by chance. */
export function seed(): number {
  const chosen = process.env.WAYMARK_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31);
  console.info(`seed: ${chosen} (repeat with WAYMARK_TEST_SEED=${chosen})`);
  return Number(chosen) | 0;
}
