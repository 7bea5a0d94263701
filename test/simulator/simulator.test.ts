import fc from 'fast-check';
import { test } from 'vitest';
import { databases } from '../support/database.ts';
import type { Command } from './action.ts';
import { type Bench, openBench } from './bench.ts';
import { commands } from './commands.ts';
import { seed } from './seed.ts';
import { simulate, type Tally } from './simulate.ts';
import { smallest } from './smallest.ts';

/** `WAYMARK_SIM_RUNS=10000` for more. */
const RUNS = Number(process.env.WAYMARK_SIM_RUNS ?? 1_000);
const embedded = databases().filter((store) => store.name === 'PGlite');

test.each(embedded)(
  'the engine answers and stores what the model foretells, whoever asks what in which order',
  async ({ open }) => {
    const bench = await openBench(await open());
    const tally: Tally = new Map();
    const from = seed();
    const started = performance.now();
    const { counterexample, numRuns } = await fc.check(
      fc.asyncProperty(commands, (list) => simulate(bench, list, tally)),
      { numRuns: RUNS, seed: from },
    );
    if (counterexample) await explain(bench, counterexample[0], `simulation ${numRuns} of seed ${from}`);
    const seconds = Math.round((performance.now() - started) / 1_000);
    console.info(`${RUNS} simulations in ${seconds} s:`, Object.fromEntries([...tally].sort()));
  },
  Math.max(600_000, RUNS * 600),
);

/** @throws Error with the fewest commands that fail, and what they failed by */
async function explain(bench: Bench, commands: readonly Command[], which: string): Promise<never> {
  const failure = (list: readonly Command[]) =>
    simulate(bench, list).then(
      () => null,
      (error: Error) => error,
    );
  const list = await smallest(commands, async (candidate) => (await failure(candidate)) !== null);
  const error = await failure(list);
  const steps = list.map((command, i) => `${i}. ${JSON.stringify(command)}`).join('\n');
  throw new Error(`${which}:\n${steps}\n${error?.message ?? 'passed when it was repeated'}`, { cause: error });
}
