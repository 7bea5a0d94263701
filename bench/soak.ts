import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { median, quantile } from './lib/figures.ts';
import { type BenchDatabase, withServices } from './lib/services.ts';
import { stolenShare, usageOf } from './lib/usage.ts';
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
/** What a line shows, how wide, and with how many digits. `stolen`: percent of the processors that other machines took. */
const COLUMNS: readonly (readonly [name: string, width: number, digits: number])[] = [
  ['minute', 6, 0],
  ['submitted/s', 11, 0],
  ['p50 ms', 8, 2],
  ['p99 ms', 8, 2],
  ['worker MB', 9, 0],
  ['dead rows', 9, 0],
  ['rows of jobs', 12, 0],
  ['database MB', 11, 0],
  ['stolen', 6, 0],
];
const shown = (cells: readonly number[]) =>
  COLUMNS.map(([, width, digits], i) => (cells[i] ?? Number.NaN).toFixed(digits).padStart(width)).join('  ');

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

  const [server] = await database.sql<{ autovacuum: string }[]>`select current_setting('autovacuum') as autovacuum`;
  if (server?.autovacuum !== 'on') throw new Error('the soak needs a server with autovacuum = on');

  console.log(COLUMNS.map(([name, width]) => name.padStart(width)).join('  '));
  const lines: number[][] = [];
  const stealing = stolenShare();
  const end = performance.now() + minutes * 60_000;
  let minute = 0;
  while (performance.now() < end) {
    const submitted = await submitFor(Math.min(60_000, end - performance.now()));
    worker.send('sample');
    const [waits] = (await once(worker, 'message')) as [SoakSample];
    const { megabytes } = await usageOf(worker.pid ?? 0);
    const { dead, jobs, size } = await tablesOf(database);
    const stolen = 100 * (await stealing());
    const p = (share: number) => quantile(waits, share);
    const cells = [++minute, submitted, p(0.5), p(0.99), megabytes, dead, jobs, size, stolen];
    lines.push(cells);
    console.log(shown(cells));
  }
  // The first quarter fills the tables and warms up.
  const quarter = (n: number) =>
    lines.slice(Math.floor((n * lines.length) / 4), Math.floor(((n + 1) * lines.length) / 4));
  const medians = (of: number[][]) => COLUMNS.map((_, i) => median(of.map((cells) => cells[i] ?? Number.NaN)));
  if (lines.length < 8) return;
  console.log('\nmedians of the second and of the last quarter');
  for (const n of [1, 3]) console.log(shown(medians(quarter(n))));

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
