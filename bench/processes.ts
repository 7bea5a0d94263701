import { drainRound } from './lib/drain-round.ts';
import { benchOptions } from './lib/options.ts';
import { print } from './lib/report.ts';
import { type Contender, compare } from './lib/rounds.ts';
import { withServices } from './lib/services.ts';
import { WorkerProcess } from './lib/worker-process.ts';
import { type OpenWorker, openWithWorker } from './systems/open.ts';
import { waymark } from './systems/waymark.ts';

/** Whether four worker processes on one Postgres are at least as fast together as one, without a lock convoy or a deadlock. */
const options = benchOptions();
const JOBS = options.short ? 4_000 : 40_000;
const BULK = 1_000;
const PROCESSES = 4;
const READY_MS = 60_000;

await withServices(async (machine) => {
  const one = await openWithWorker(waymark, machine, 'throughput');
  const four = await openWithWorker(waymark, machine, 'throughput');
  const workers = [four.worker];
  for (let n = 1; n < PROCESSES; n++) {
    const settings = { databaseUrl: four.database.url, redisUrl: machine.redisUrl, redisPrefix: '' };
    const worker = new WorkerProcess(waymark.worker, { ...settings, tuning: 'throughput' });
    machine.atEnd(() => worker.close());
    await worker.next('ready', READY_MS);
    workers.push(worker);
  }
  const comparisons = await compare(
    [contender(`${PROCESSES} processes`, four, workers), contender('1 process', one, [one.worker])],
    {
      drain: { unit: 'jobs/s', better: 'higher', digits: 0 },
      'sessions that wait for a lock': { unit: 'mean', better: 'lower', digits: 2 },
      deadlocks: { unit: 'in all', better: 'lower', digits: 0 },
    },
    options,
  );
  const what = `${JOBS} no-op jobs, by ${PROCESSES} worker processes and by one`;
  print({ benchmark: 'processes', what, settings: { Waymark: one.setting }, comparisons }, machine, options);
});

function contender(name: string, system: OpenWorker, workers: readonly WorkerProcess[]): Contender {
  const { database, submitter } = system;
  let submitted = 0;
  return {
    name,
    async run() {
      for (let n = 0; n < JOBS; n += BULK) await submitter.submitMany(BULK);
      submitted += JOBS;
      await database.settleDown();
      const waiting: number[] = [];
      const isFinished = async () => {
        const [row] = await database.sql<{ waiting: number }[]>`
          select count(*)::int as waiting from pg_locks l
          where not l.granted and l.database = (select oid from pg_database where datname = current_database())`;
        waiting.push(row?.waiting ?? 0);
        return !(await submitter.hasUnfinished());
      };
      const { perSecond } = await drainRound(workers, JOBS, isFinished);
      await submitter.assertAllDone(submitted);
      const [stat] = await database.sql<{ deadlocks: number }[]>`
        select deadlocks::int from pg_stat_database where datname = current_database()`;
      const mean = waiting.reduce((a, b) => a + b, 0) / Math.max(1, waiting.length);
      return { drain: perSecond, 'sessions that wait for a lock': mean, deadlocks: stat?.deadlocks ?? Number.NaN };
    },
  };
}
