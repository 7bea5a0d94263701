import { drainRound } from './lib/drain-round.ts';
import { FILLINGS, fill } from './lib/filling.ts';
import { benchOptions } from './lib/options.ts';
import { print } from './lib/report.ts';
import { type Comparison, type Contender, compare } from './lib/rounds.ts';
import { withServices } from './lib/services.ts';
import { type OpenWorker, openWithWorker } from './systems/open.ts';
import { waymark } from './systems/waymark.ts';

/** Whether a drain stays as fast when the tables are full, each filling against an empty database. */
const options = benchOptions();
const JOBS = options.short ? 2_000 : 20_000;
const BULK = 1_000;
const size = (jobs: number) => (options.short ? jobs / 100 : jobs);

await withServices(async (machine) => {
  const empty = await openWithWorker(waymark, machine, 'throughput');
  const comparisons: Comparison[] = [];
  for (const filling of FILLINGS) {
    for (const statistics of ['fresh statistics', 'statistics from before']) {
      const full = await openWithWorker(waymark, machine, 'throughput');
      await fill(full.database.sql, filling, size(filling.jobs));
      // A planner that believes the table to be empty must not choose another plan.
      const keep = statistics !== 'fresh statistics';
      if (!keep) await full.database.settleDown();
      const figure = `${size(filling.jobs).toLocaleString('en')} ${filling.name}, ${statistics}`;
      const contenders = [drain('full', full, figure, keep), drain('empty', empty, figure, false)];
      const kind = { unit: 'jobs/s', better: 'higher', digits: 0 } as const;
      comparisons.push(
        ...(await compare(contenders, { [figure]: kind }, { ...options, rounds: Math.min(options.rounds, 3) })),
      );
      await full.worker.close();
    }
  }
  const what = `${JOBS} no-op jobs by one worker process, beside what is there already`;
  print({ benchmark: 'growth', what, settings: { Waymark: empty.setting }, comparisons }, machine, options);
});

function drain(name: string, system: OpenWorker, figure: string, keepStatistics: boolean): Contender {
  const { database, submitter, worker } = system;
  const isFinished = async () => {
    const [row] = await database.sql<{ done: boolean }[]>`
      select not exists (select from waymark.job_states where state = 'RUNNING') as done`;
    return row?.done ?? false;
  };
  return {
    name,
    async run() {
      for (let n = 0; n < JOBS; n += BULK) await submitter.submitMany(BULK);
      if (!keepStatistics) await database.settleDown();
      const { perSecond } = await drainRound([worker], JOBS, isFinished);
      return { [figure]: perSecond };
    },
  };
}
