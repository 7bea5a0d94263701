import { setTimeout as sleep } from 'node:timers/promises';
import { runBenchmark } from './lib/benchmark.ts';
import { quantile } from './lib/figures.ts';
import { benchOptions } from './lib/options.ts';
import type { FigureKind, Figures } from './lib/rounds.ts';
import { bullmq } from './systems/bullmq.ts';
import { bullmqPostgres } from './systems/bullmq-postgres.ts';
import { graphile } from './systems/graphile.ts';
import { type OpenWorker, openWithWorker } from './systems/open.ts';
import { pgBoss } from './systems/pg-boss.ts';
import { waymark } from './systems/waymark.ts';

/** How soon a job's handler starts in another process when nothing else happens: from the call of submit on. */
const options = benchOptions();
const JOBS = options.short ? 20 : 200;
/** Between two jobs all sides come to rest. Not a round number, so that no timer beats in step with it. */
const PAUSE_MS = 23;
const JOB_MS = 10_000;
const milliseconds: FigureKind = { unit: 'ms', better: 'lower', digits: 2 };

await runBenchmark(
  {
    benchmark: 'dispatch',
    what: `idle system, from the call of submit until the handler starts in another process, ${JOBS} jobs a round`,
    kinds: { p50: milliseconds, p99: milliseconds },
    systems: [waymark, graphile, bullmq, bullmqPostgres, pgBoss],
    open: (system, machine) => openWithWorker(system, machine, 'latency'),
    roundOf: dispatch,
  },
  options,
);

function dispatch({ database, submitter, worker }: OpenWorker): () => Promise<Figures> {
  let submitted = 0;
  return async () => {
    await database.settleDown();
    worker.send({ kind: 'start', jobs: JOBS });
    await worker.next('started', JOB_MS);
    const waits: number[] = [];
    for (let n = 0; n < JOBS; n++) {
      await sleep(PAUSE_MS);
      const handled = worker.next('handled', JOB_MS);
      const begin = process.hrtime.bigint();
      const [{ at }] = await Promise.all([handled, submitter.submit()]);
      // Both processes read the machine's one monotonic clock.
      waits.push(Number(BigInt(at) - begin) / 1e6);
    }
    submitted += JOBS;
    while (await submitter.hasUnfinished()) await sleep(1);
    worker.send({ kind: 'stop' });
    await worker.next('stopped', JOB_MS);
    await submitter.assertAllDone(submitted);
    return { p50: quantile(waits, 0.5), p99: quantile(waits, 0.99) };
  };
}
