import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/types.ts';
import { databases } from '../support/database.ts';
import { openBench } from './bench.ts';
import { commands } from './commands.ts';
import { MUTANTS } from './mutants.ts';
import { prepared } from './prepared.ts';
import { seed } from './seed.ts';
import { simulate } from './simulate.ts';

/** A wrong engine that so many simulations do not find is one that the simulator does not find. */
const RUNS = 400;
/** Always the same, so that this is no matter of luck: each of the mutants is found soon. */
const SEED = 8;
const embedded = databases().filter((store) => store.name === 'PGlite');

describe.each(embedded)('the simulator finds an engine that breaks one rule', ({ open }) => {
  let database: Database;
  let from: number;
  beforeAll(async () => {
    database = await prepared(await open());
    from = seed(SEED);
  });

  test.each(MUTANTS)('$breaks', async ({ piece, replacedBy }) => {
    let applied = 0;
    const wrong = await openBench(database, (sql) => {
      const mutated = sql.replace(piece, replacedBy);
      if (mutated !== sql) applied++;
      return mutated;
    });
    const { counterexample, numRuns } = await fc.check(
      fc.asyncProperty(commands, (list) => simulate(wrong, list)),
      { numRuns: RUNS, seed: from, endOnFailure: true },
    );
    expect(applied, 'statements that hold the piece').toBeGreaterThan(0);
    if (!counterexample) throw new Error(`not found by ${numRuns} simulations`);
    // It is this rule that was found broken: without the change nothing is wrong with the same commands.
    await simulate(await openBench(database), counterexample[0]);
  });
});
