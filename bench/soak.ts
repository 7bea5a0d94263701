import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { quantile } from './lib/figures.ts';
import { type BenchDatabase, withServices } from './lib/services.ts';
import { usageOf } from './lib/usage.ts';
import { createWaymark } from './systems/built.ts';
import type { SoakInput, SoakSample } from './systems/soak-worker.ts';

/**
 * Hours of steady load, with jobs that are removed after some minutes: whether dead rows, sizes, memory and the wait
 * until a handler starts stay what they were. Prints a line a minute; not part of `npm run bench`.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '120' },
    /** Jobs a second: half of what `drain.ts` says for this machine. */
    rate: { type: 'string', default: '5000' },
    /** After how long a finished job is removed; a duration as in the settings. */
    retain: { type: 'string', default: '2m' },
  },
});
const minutes = Number(values.minutes);
const rate = Number(values.rate);
if (!(minutes > 0 && minutes <= 1_440 && rate >= 1 && rate <= 100_000))
  throw new Error('--minutes 1…1440, --rate 1…100000');

const TICK_MS = 20;

await withServices(async (machine) => {
  const database = await machine.createDatabase('soak');
  const service = await createWaymark({ databaseUrl: database.url, redisUrl: machine.redisUrl });
  machine.atEnd(() => service.close());
  const worker = fork(new URL('./systems/soak-worker.ts', import.meta.url), [database.url, machine.redisUrl], {
    env: { ...process.env, WAYMARK_RETAIN_COMPLETED: values.retain },
  });
  machine.atEnd(async () => {
    worker.disconnect();
    await once(worker, 'exit');
  });
  await once(worker, 'message');

  console.log('minute  submitted/s  p50 ms  p99 ms  worker MB  dead rows  rows of jobs  database MB');
  const end = performance.now() + minutes * 60_000;
  let minute = 0;
  while (performance.now() < end) {
    const submitted = await submitFor(Math.min(60_000, end - performance.now()));
    worker.send('sample');
    const [waits] = (await once(worker, 'message')) as [SoakSample];
    const { megabytes } = await usageOf(worker.pid ?? 0);
    const { dead, jobs, size } = await tablesOf(database);
    const cells = [++minute, submitted, quantile(waits, 0.5), quantile(waits, 0.99), megabytes, dead, jobs, size];
    const widths = [6, 11, 6, 6, 9, 9, 12, 11];
    const digits = [0, 0, 2, 2, 0, 0, 0, 0];
    console.log(cells.map((cell, i) => cell.toFixed(digits[i]).padStart(widths[i] ?? 0)).join('  '));
  }

  /** Jobs a second that were handed in; a tick that comes late makes up for it. */
  async function submitFor(ms: number): Promise<number> {
    const start = performance.now();
    let done = 0;
    while (performance.now() - start < ms) {
      const due = Math.min(1_000, Math.floor(((performance.now() - start) / 1_000) * rate) - done);
      if (due > 0) {
        const input: SoakInput = { at: String(process.hrtime.bigint()) };
        await service.submitMany(Array.from({ length: due }, () => ({ task: 'soak', input })));
        done += due;
      }
      if (due < 1_000) await sleep(TICK_MS);
    }
    return done / ((performance.now() - start) / 1_000);
  }
});

async function tablesOf({ sql }: BenchDatabase): Promise<{ dead: number; jobs: number; size: number }> {
  const [row] = await sql<{ dead: number; jobs: number; size: number }[]>`
    select sum(n_dead_tup)::float8 as dead, max(n_live_tup) filter (where relname = 'jobs')::float8 as jobs,
           pg_database_size(current_database()) / 1e6::float8 as size
    from pg_stat_user_tables where schemaname = 'waymark'`;
  return row ?? { dead: Number.NaN, jobs: Number.NaN, size: Number.NaN };
}
