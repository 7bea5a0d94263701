import { runBenchmark } from './lib/benchmark.ts';
import { drainRound } from './lib/drain-round.ts';
import { benchOptions } from './lib/options.ts';
import type { Figures } from './lib/rounds.ts';
import { bullmq } from './systems/bullmq.ts';
import { bullmqPostgres } from './systems/bullmq-postgres.ts';
import { dbos } from './systems/dbos.ts';
import { graphile } from './systems/graphile.ts';
import { type OpenWorker, openWithWorker } from './systems/open.ts';
import { pgBoss } from './systems/pg-boss.ts';
import { waymark } from './systems/waymark.ts';

/** How fast one worker process empties a full queue of no-op jobs, each durably finished. */
const options = benchOptions();
const JOBS = options.short ? 2_000 : 20_000;
/** Where that many would take too long; the figures are per second and per job. */
const FEWER = new Map<string, number>([[dbos.id, options.short ? 200 : 5_000]]);
const BULK = 1_000;

await runBenchmark(
  {
    benchmark: 'drain',
    what: `${JOBS} no-op jobs (DBOS: ${FEWER.get(dbos.id)}), one worker process, from the first handler's start until all are durably finished`,
    kinds: {
      drain: { unit: 'jobs/s', better: 'higher', digits: 0 },
      'worker CPU': { unit: 'µs/job', better: 'lower', digits: 1 },
    },
    systems: [waymark, graphile, bullmq, bullmqPostgres, pgBoss, dbos],
    open: (system, machine) => openWithWorker(system, machine, 'throughput'),
    roundOf: drain,
  },
  options,
);

function drain({ id, database, submitter, worker }: OpenWorker): () => Promise<Figures> {
  const jobs = FEWER.get(id) ?? JOBS;
  let submitted = 0;
  return async () => {
    for (let n = 0; n < jobs; n += BULK) await submitter.submitMany(Math.min(BULK, jobs - n));
    submitted += jobs;
    await database.settleDown();
    const { perSecond, cpuMicrosPerJob } = await drainRound(
      [worker],
      jobs,
      async () => !(await submitter.hasUnfinished()),
    );
    await submitter.assertAllDone(submitted);
    return { drain: perSecond, 'worker CPU': cpuMicrosPerJob };
  };
}
