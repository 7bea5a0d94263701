import { afterEach, expect, test } from 'vitest';
import { silentLogger } from '../../src/core/log.ts';
import type { AnyTask } from '../../src/core/task.ts';
import { type OpenDatabase, openDatabase } from '../../src/db/open.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { createMaintenanceLoop } from '../../src/worker/maintenance-loop.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { describePostgres, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { engineOptions, me } from '../support/factory.ts';

const PROCESSES = 6;
const LEASE_MS = 2_000;

/** What several processes would be: each with connections, an engine and a sweep of its own. */
describePostgres('six processes that sweep at once', (store) => {
  const ends: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  async function fleet(database: TestDatabase, sweepMs: number, retainMs: number): Promise<Engine[]> {
    return Promise.all(
      Array.from({ length: PROCESSES }, async () => {
        const own: OpenDatabase = await openDatabase({ url: database.url as string });
        ends.push(() => own.close());
        const retain = { completed: retainMs, failed: retainMs, canceled: retainMs, keys: retainMs };
        const options = engineOptions({ leaseMs: LEASE_MS, sweepMs, retainMs: retain });
        const engine = createEngine({ database: own, channel: createMemoryChannel(), options });
        const loop = createMaintenanceLoop({
          maintenance: engine.maintenance,
          log: silentLogger,
          sweepMs,
          pollMs: 100,
        });
        loop.start();
        ends.push(() => loop.stop());
        return engine;
      }),
    );
  }

  const deadlocks = async (database: TestDatabase) => {
    const [row] = await database.read.query<{ n: number }>(
      'select deadlocks::int as n from pg_stat_database where datname = current_database()',
    );
    return row?.n;
  };

  test('leave what has completed alone: 2,000 jobs over 6 workers stay as they ended (B12)', async () => {
    const database = await store.open();
    const engines = await fleet(database, 100, 86_400_000);
    const echo = defineTask({ name: 'echo', run: (_ctx, n) => n }) as AnyTask;
    for (const engine of engines) {
      const worker = createWorker({
        ...{ execution: engine.execution, channel: createMemoryChannel(), db: database.work.user, tasks: [echo] },
        ...{ concurrency: 10, log: silentLogger },
        options: {
          ...{ heartbeatMs: 200, leaseMs: LEASE_MS, pollMs: 100, graceMs: 300, maxBlockMs: 60_000 },
          maxBytes: { result: 1_000, checkpoint: 1_000 },
        },
      });
      await worker.start();
      ends.push(() => worker.stop());
    }
    const [first] = engines;
    for (let i = 0; i < 2; i++) {
      await first?.jobs.submitMany(
        me,
        Array.from({ length: 1_000 }, (_, n) => ({ task: 'echo', input: n })),
      );
    }
    const counts = () =>
      database.read.query(
        `select s.state, count(*)::int as n, max(s.attempt) as attempts,
                (select count(*)::int from waymark.events e where e.type = 'JobCompleted') as ends
         from waymark.job_states s group by s.state`,
      );
    const right = [{ state: 'COMPLETED', n: 2_000, attempts: 1, ends: 2_000 }];
    await eventually(async () => expect(await counts()).toEqual(right), { timeoutMs: 60_000, intervalMs: 100 });
    // Behind every lease: whoever trusts an old entry would act now.
    const until = performance.now() + 2 * LEASE_MS;
    await eventually(() => expect(performance.now()).toBeGreaterThan(until), { timeoutMs: 4 * LEASE_MS });
    expect(await counts()).toEqual(right);
  }, 120_000);

  test('prune 20,000 jobs without a deadlock and without an orphan, while new ones end (B55, B56)', async () => {
    const database = await store.open();
    await database.work.query(`
      insert into waymark.jobs (id, tenant, task, queue, priority, tags, input_digest, submitted_by, backoff, created_at)
      select gen_random_uuid(), 'default', 'echo', 'default', 0, '{}', '-', 'user:local', '{}', now() - interval '1 h'
      from generate_series(1, 20000)`);
    await database.work.query(`
      insert into waymark.job_states (id, tenant, task, queue, state, max_attempts, rank, run_at, changed_at, finished_at, attempt, last_seq, version)
      select id, tenant, task, queue, 'COMPLETED', 3, created_at, created_at, created_at, created_at, 1, 2, 2 from waymark.jobs`);
    await database.work.query(`
      insert into waymark.ended_attempts (job_id, number, run, worker_id, started_at, finished_at, outcome, digest)
      select id, 1, 1, gen_random_uuid(), created_at, created_at, 'SUCCEEDED', 'SUCCEEDED:' from waymark.jobs`);
    await database.work.query(`
      insert into waymark.events (job_id, seq, at, type, run, state)
      select id, n, created_at, case n when 1 then 'JobSubmitted' else 'JobCompleted' end, 1, 'COMPLETED'
      from waymark.jobs, generate_series(1, 2) n`);
    await database.work.query(`
      insert into waymark.checkpoints (job_id, epoch, key, sequence, kind, data, attempt, created_at, updated_at)
      select id, 1, 'k', 1, 'STEP', '1', 1, created_at, created_at from waymark.jobs`);
    await database.work.query('analyze');
    const before = await deadlocks(database);
    const engines = await fleet(database, 200, 1_000);
    // Others submit meanwhile, and hear of nothing.
    const definition = (defineTask({ name: 'echo', run: () => 1 }) as AnyTask).definition;
    let submitting = true;
    const submits = (async () => {
      let n = 0;
      while (submitting) {
        const { jobId } = await (engines[n % PROCESSES] as Engine).jobs.submit(me, { task: 'echo' }, { definition });
        await (engines[(n + 1) % PROCESSES] as Engine).jobs.cancel(me, jobId);
        n++;
      }
      return n;
    })();
    const left = () =>
      database.read.query<{ table: string; n: number }>(
        ['jobs', 'job_states', 'attempts', 'events', 'checkpoints', 'payloads']
          .map((table) => `select '${table}' as "table", count(*)::int as n from waymark.${table}`)
          .join(' union all '),
      );
    await eventually(
      async () => {
        const [row] = await database.read.query<{ n: number }>(
          `select count(*)::int as n from waymark.jobs where created_at < now() - interval '30 min'`,
        );
        expect(row?.n).toBe(0);
      },
      { timeoutMs: 60_000, intervalMs: 200 },
    );
    submitting = false;
    expect(await submits).toBeGreaterThan(1);
    // Nothing new comes in, and still what is left goes when its time has come.
    await eventually(async () => expect((await left()).filter(({ n }) => n > 0)).toEqual([]), { timeoutMs: 30_000 });
    expect(await deadlocks(database)).toBe(before);
  }, 150_000);
});
