import { setTimeout as sleep } from 'node:timers/promises';
import { runBenchmark } from './lib/benchmark.ts';
import { benchOptions } from './lib/options.ts';
import type { Figures } from './lib/rounds.ts';
import { dbos } from './systems/dbos.ts';
import { type OpenWorker, openWithWorker } from './systems/open.ts';
import type { StepSubmitter } from './systems/system.ts';
import { waymark } from './systems/waymark.ts';

/** How fast one worker process runs durable steps, each saved before the next begins. */
const options = benchOptions();
const STEPS = 20;
const AT_ONCE = 16;
/** So many that a round takes some seconds, as fast as each system is. */
const JOBS = new Map<string, number>([
  [waymark.id, options.short ? 40 : 1_000],
  [dbos.id, options.short ? 20 : 300],
]);
const ALONE = options.short ? 5 : 100;
const ROUND_MS = 120_000;

await runBenchmark(
  {
    benchmark: 'steps',
    what: `jobs of ${STEPS} steps that do nothing, ${AT_ONCE} at a time in one worker process, from the first handler's start until all are durably finished; and what a step adds to a job that runs alone`,
    kinds: {
      steps: { unit: 'steps/s', better: 'higher', digits: 0 },
      'extra step': { unit: 'ms', better: 'lower', digits: 2 },
    },
    systems: [waymark, dbos],
    open: (system, machine) => openWithWorker(system, machine, 'steps'),
    roundOf: steps,
  },
  options,
);

function steps({ id, database, submitter, worker }: OpenWorker<StepSubmitter>): () => Promise<Figures> {
  const jobs = JOBS.get(id) ?? ALONE;
  let submitted = 0;
  let taken = 0;

  /** Seconds for so many jobs of so many steps. */
  const time = async (count: number, each: number, atOnce: number): Promise<number> => {
    await submitter.submitStepped(count, each);
    submitted += count;
    taken += count * each;
    await database.settleDown();
    worker.send({ kind: 'start', jobs: count, atOnce });
    const { first } = await worker.next('drained', ROUND_MS);
    while (await submitter.hasUnfinished()) await sleep(1);
    const end = process.hrtime.bigint();
    worker.send({ kind: 'stop' });
    await worker.next('stopped', ROUND_MS);
    await submitter.assertAllDone(submitted, taken);
    return Number(end - BigInt(first)) / 1e9;
  };

  return async () => {
    const together = await time(jobs, STEPS, AT_ONCE);
    // What a job costs without its steps is in both, and goes away.
    const extra = (await time(ALONE, STEPS, 1)) - (await time(ALONE, 1, 1));
    return { steps: (jobs * STEPS) / together, 'extra step': (extra * 1_000) / ALONE / (STEPS - 1) };
  };
}
