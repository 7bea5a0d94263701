import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/types.ts';
import { databases } from '../support/database.ts';
import { openBench } from './bench.ts';
import { commands } from './commands.ts';
import { MUTANTS } from './mutants.ts';
import { simulate } from './simulate.ts';

/** A wrong engine that so many simulations do not find is one that the simulator does not find. */
const RUNS = 400;
/** Always the same, so that this is no matter of luck: each of the mutants is found soon. */
const SEED = 8;
/** Simulations in which every statement that a mutant changes is met. */
const WHOLE = 40;
const embedded = databases().filter((store) => store.name === 'PGlite');

describe.each(embedded)('the simulator finds an engine that breaks one rule', ({ open }) => {
  let database: Database;
  const statements = new Set<string>();
  beforeAll(async () => {
    database = await open();
    const right = await openBench(database, (sql) => {
      statements.add(sql);
      return sql;
    });
    await fc.assert(
      fc.asyncProperty(commands, (list) => simulate(right, list)),
      { numRuns: WHOLE, seed: SEED },
    );
  });

  test.each(MUTANTS)(
    '$breaks',
    async ({ piece, replacedBy }) => {
      // Said at once: a mutant that changes nothing would only be missed, after all the simulations.
      expect([...statements].filter((sql) => sql.replace(piece, replacedBy) !== sql)).not.toEqual([]);
      const wrong = await openBench(database, (sql) => sql.replace(piece, replacedBy));
      const { counterexample, numRuns } = await fc.check(
        fc.asyncProperty(commands, (list) => simulate(wrong, list)),
        { numRuns: RUNS, seed: SEED, endOnFailure: true },
      );
      if (!counterexample) throw new Error(`not found by ${numRuns} simulations`);
      // It is this rule that was found broken: without the change nothing is wrong with the same commands.
      await simulate(await openBench(database), counterexample[0]);
    },
    120_000,
  );
});
