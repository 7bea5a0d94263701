/**
 * A service that is killed: node … crash-program.ts STORE LEDGER [TEMPLATE]. STORE is a Postgres URL or a directory,
 * TEMPLATE a copy of a migrated embedded database to begin with. Submits one job (once over all starts), works on it, and prints what
 * happens line by line; the last line holds the totals.
 */
import { appendFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { silentLogger } from '../../src/core/log.ts';
import { migrate } from '../../src/db/migrate.ts';
import { openDatabase } from '../../src/db/open.ts';
import { jobById } from '../../src/db/reads/job-row.ts';
import { createEngine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { createMaintenanceLoop } from '../../src/worker/maintenance-loop.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { engineOptions, me } from '../support/factory.ts';

const [store = '', ledger = '', template] = process.argv.slice(2);
const ITEMS = 200;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const works = defineTask({
  name: 'works',
  maxAttempts: 50,
  backoff: { type: 'fixed', delay: 0, jitter: 0 },
  run: async (ctx) => {
    for (let i = 0; i < 5; i++) {
      await ctx.step(`step ${i}`, () => {
        appendFileSync(ledger, `step ${i} attempt ${ctx.job.attempt}\n`);
        say(`step ${i}`);
      });
    }
    await ctx.transaction('once', (tx) => tx.execute(sql`insert into public.done values (0)`).then(() => null));
    async function* source(cursor: number) {
      for (let n = cursor + 1; n <= ITEMS; n++) yield { value: n, cursor: n };
    }
    return ctx.batches('rows', { start: 0, source, size: 10, total: ITEMS }, async (values, { tx, index }) => {
      await tx.execute(sql`insert into public.done select n from unnest(${`{${values.join(',')}}`}::int[]) n`);
      say(`batch ${index}`);
      await sleep(20);
    });
  },
});

const copy = template === undefined ? undefined : new Blob([new Uint8Array(await readFile(template))]);
const embedded = { dataDir: store, ...(copy ? { template: copy } : {}) };
const database = await openDatabase(store.startsWith('postgres') ? { url: store } : embedded);
await migrate(database.maintenance);
await database.work.user.execute(sql`create table if not exists public.done (n int)`);
const channel = createMemoryChannel();
const options = { leaseMs: 3_000, sweepMs: 200 };
const engine = createEngine({ database, channel, options: engineOptions(options) });
if (database.kind === 'embedded') await engine.maintenance.recover();
const maintenance = createMaintenanceLoop({ ...engine, log: silentLogger, sweepMs: 200, pollMs: 100 });
maintenance.start();
const worker = createWorker({
  execution: engine.execution,
  channel,
  db: database.work.user,
  tasks: [works],
  concurrency: 2,
  log: silentLogger,
  options: {
    heartbeatMs: 100,
    leaseMs: options.leaseMs,
    pollMs: 100,
    graceMs: 1_000,
    maxBlockMs: 60_000,
    maxBytes: { result: 1_000_000, checkpoint: 1_000_000 },
  },
});
await worker.start();
const request = { task: works.name, idempotencyKey: 'the one' };
const { jobId } = await engine.jobs.submit(me, request, { definition: works.definition });
say('ready');
for (;;) {
  const job = await jobById(database.read, me.tenant, jobId);
  if (job?.state === 'COMPLETED') {
    const [rows] = await database.read.query<object>(
      'select count(*)::int as rows, count(distinct n)::int as "distinct", max(n) as last from public.done',
    );
    const attempts = await database.read.query<{ outcome: string }>(
      'select outcome from waymark.attempts where job_id = $1::uuid order by number',
      [jobId],
    );
    say(JSON.stringify({ ...rows, outcomes: attempts.map((a) => a.outcome), failures: job.failures }));
    break;
  }
  await sleep(50);
}
await worker.stop();
await maintenance.stop();
await channel.close();
await database.close();
