import { sql as statement } from 'drizzle-orm';
import postgres, { type Sql } from 'postgres';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../src/core/log.ts';
import { isTerminal } from '../../src/core/state.ts';
import { jobById } from '../../src/db/reads/job-row.ts';
import { createLiveHub } from '../../src/engine/live/index.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { cleanUp } from '../cli/program.ts';
import { hasRedisServer, startRedis } from '../events/redis-server.ts';
import { SocketClient } from '../server/clients.ts';
import { describePostgres } from '../support/database.ts';
import { within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';
import { bench } from '../worker/bench.ts';
import { backendsOf, backToBaseline, watchBackends } from './backends.ts';
import { trial } from './bench.ts';
import { hangUp } from './hang-up.ts';
import { inconsistencies } from './storm/consistency.ts';

afterAll(cleanUp);

const MANY = 50;
const RUNNING = 20;
const SUBMITTERS = 32;
const LISTS = 8;
const ROUND_MS = 1_500;
const FOLLOW_EVERY = 10;
/** Some samples in a row. Relations grow under a lock that lasts for a moment. */
const LOCK_MS = 500;
const ROUNDS = 5;
const ANSWER_MS = 30_000;
const IDLE_MS = 1_000;
/** The promise is one second; a small machine is busy with others, too. */
const PLAIN_MS = 3_000;

describePostgres('connections', (store) => {
  test(`two for each purpose are enough for all at once: nobody waits for himself (B73)`, async () => {
    const two = { submit: 2, work: 2, read: 2, maintenance: 2, user: 2 };
    const b = await bench({ ...store, open: () => store.open({ poolSizes: two }) });
    const { engine, database, channel } = b;
    const look = postgres(database.url as string, { max: 1 });
    onTestFinished(() => look.end());
    await look`create table public.written (job text, n int)`;
    const plain = defineTask({ name: 'plain', run: () => 1 });
    const busy = defineTask({
      name: 'busy',
      async run(ctx) {
        for (let n = 0; n < ROUNDS; n++) {
          ctx.progress({ current: n, total: ROUNDS });
          await ctx.step(`step ${n}`, () => ctx.db.execute(statement`select pg_sleep(0.005)`).then(() => n));
          await ctx.transaction(`transaction ${n}`, async (tx) => {
            await tx.execute(statement`insert into public.written values (${ctx.job.id}, ${n})`);
            const options = { definition: plain.definition, tx: database.adopt(tx) };
            await engine.jobs.submit(me, { task: 'plain', idempotencyKey: `${ctx.job.id} ${n}` }, options);
          });
          await Promise.all([1, 2, 3].map((i) => ctx.checkpoint(`value ${n} ${i}`, i)));
        }
        return 'done';
      },
    });
    await b.work([busy], { concurrency: RUNNING });
    await engine.execution.registerTasks([plain.definition]);
    const hub = createLiveHub({ db: database.read, channel, log: silentLogger });
    onTestFinished(() => hub.close());
    const watching = watchBackends(look);

    const running = await Promise.all(Array.from({ length: RUNNING }, () => b.submit(busy)));
    const many = <T>(work: (i: number) => Promise<T>) => Promise.all(Array.from({ length: MANY }, (_, i) => work(i)));
    const runningOne = (i: number) => running[i % RUNNING] as string;
    const since = performance.now();
    const [, , , ends] = await within(
      ANSWER_MS,
      Promise.all([
        many((i) => b.submit(plain, i, { idempotencyKey: `key ${i}` })),
        many((i) =>
          engine.jobs.submitMany(
            me,
            Array.from({ length: 20 }, (_, n) => ({ task: 'plain', idempotencyKey: `bulk ${(i + n) % MANY}` })),
          ),
        ),
        many(async (i) => expect(await jobById(database.read, me.tenant, runningOne(i))).not.toBeNull()),
        many(async (i) => {
          let last = '';
          for await (const event of hub.jobEvents(me, runningOne(i))) last = event.type;
          return last;
        }),
        Promise.all(running.map((id) => b.ends(id))),
      ]),
      'every answer',
    );
    const tookMs = performance.now() - since;
    const seen = await watching.stop();
    console.info({ tookMs, ...seen });
    expect(new Set(ends)).toEqual(new Set(['JobCompleted']));
    const [written] =
      await look`select count(*)::int as n, count(distinct (job, n))::int as distinct from public.written`;
    expect(written).toEqual({ n: RUNNING * ROUNDS, distinct: RUNNING * ROUNDS });
    expect(seen.samples).toBeGreaterThan(5);
    expect(seen.idleInTransactionMs).toBeLessThan(IDLE_MS);
    for (const id of running) expect(isTerminal((await b.job(id)).state)).toBe(true);
  }, 60_000);

  test('callers who hang up leave no line of statements in front of those who stay (B74)', async (ctx) => {
    const t = await trial(ctx);
    await fillWithFinishedJobs(t.sql, 50_000);
    await Promise.all(Array.from({ length: 4 }, () => t.query(HEAVY)));
    const baseline = await backendsOf(t.sql);
    for (let wave = 0; wave < 10; wave++) {
      await Promise.all(Array.from({ length: 20 }, () => hangUp(t.first.url, HEAVY, {}, 30)));
    }
    const times: number[] = [];
    for (let i = 0; i < 20; i++) {
      const since = performance.now();
      await t.query('{ jobs(first: 1) { nodes { id } } }');
      times.push(performance.now() - since);
    }
    console.info({ plainQueryMs: times.map(Math.round), baseline });
    expect(Math.max(...times)).toBeLessThan(PLAIN_MS);
    await backToBaseline(t.sql, baseline);
    expect(t.first.stderr()).not.toMatch(/"level":[56]0|Warning/);
  }, 120_000);

  test('a submit whose caller hung up was done whole or not at all, and its key tells which (B74)', async (ctx) => {
    const random = seededRandom();
    const t = await trial(ctx);
    const input = (i: number) => ({ input: { task: 'echo', input: 'x'.repeat(10_000), idempotencyKey: `key ${i}` } });
    // Makes the task known, and is gone before anybody counts.
    const worker = await t.worker();
    worker.kill('SIGTERM');
    await worker.ended;
    // Opens as many connections as there may be.
    await Promise.all(Array.from({ length: 30 }, (_, i) => t.query(SUBMIT, input(-1 - i))));
    const baseline = await backendsOf(t.sql);
    const answered = await Promise.all(
      Array.from({ length: 100 }, async (_, i) => hangUp(t.first.url, SUBMIT, input(i), 200 * random())),
    );
    await backToBaseline(t.sql, baseline);
    const applied = new Map(
      (await t.sql<{ key: string; id: string }[]>`select idempotency_key as key, id from waymark.jobs`).map(
        ({ key, id }) => [key, id],
      ),
    );
    console.info({ answered: answered.filter(Boolean).length, applied: applied.size - 30 });
    expect(await inconsistencies(t.sql)).toEqual({});
    expect(answered).toContain(false);
    await t.worker();
    const repeated = await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const { submitJob } = await t.query<{ submitJob: { job: { id: string } } }>(SUBMIT, input(i));
        return submitJob.job.id;
      }),
    );
    for (const [i, jobId] of repeated.entries()) {
      const key = `key ${i}`;
      const id = t.uuid(jobId);
      expect(await t.sql`select id from waymark.jobs where idempotency_key = ${key}`).toEqual([{ id }]);
      expect(applied.get(key) ?? id).toBe(id);
      expect(await t.ends(jobId)).toBe('COMPLETED');
    }
  }, 120_000);

  test('who submits is not held up by those who follow, and commits share no lock (B58)', async (ctx) => {
    const redis = hasRedisServer ? await startRedis() : null;
    ctx.onTestFinished(() => redis?.stop());
    const t = await trial(ctx, redis ? { REDIS_URL: redis.url } : {});
    await t.worker();
    const followed = { jobs: 0, changes: 0, ends: 0 };

    /** Submits per second of all together. A part of the jobs is followed from its submit to its end. */
    async function throughput(forMs: number, follow: boolean): Promise<number> {
      const until = performance.now() + forMs;
      const ends: Promise<void>[] = [];
      let submitted = 0;
      const submitting = async () => {
        while (performance.now() < until) {
          const job = await t.client.submit('echo', submitted++);
          if (!follow || submitted % FOLLOW_EVERY > 0) continue;
          followed.jobs++;
          ends.push(
            (async () => {
              for await (const event of job.events()) if (event.type === 'JobCompleted') followed.ends++;
            })(),
          );
        }
      };
      const since = performance.now();
      await Promise.all(Array.from({ length: SUBMITTERS }, submitting));
      const perSecond = (submitted * 1_000) / (performance.now() - since);
      await Promise.all(ends);
      return perSecond;
    }

    async function withLists<T>(work: () => Promise<T>): Promise<T> {
      const sockets = await Promise.all(Array.from({ length: LISTS }, () => new SocketClient(t.first.url).start()));
      for (const client of sockets) {
        client.subscribe('list', 'subscription { jobsChanged(minInterval: "100ms") { reset jobs { id state } } }');
        client.socket.on('message', () => followed.changes++);
      }
      return work().finally(() => {
        for (const { socket } of sockets) socket.terminate();
      });
    }

    await throughput(2 * ROUND_MS, false);
    const watching = watchBackends(t.sql);
    const perSecond: { alone: number; watched: number }[] = [];
    for (let round = 0; round < 5; round++) {
      const alone = await throughput(ROUND_MS, false);
      perSecond.push({ alone, watched: await withLists(() => throughput(ROUND_MS, true)) });
    }
    const seen = await watching.stop();
    // Of what was measured side by side: others use the machine, too, and at any time.
    const ratio = median(perSecond.map(({ alone, watched }) => watched / alone));
    console.info({ perSecond, ratio, followed, ...seen, redis: redis !== null });
    expect(ratio).toBeGreaterThan(0.5);
    expect(followed.ends).toBe(followed.jobs);
    expect(followed.changes).toBeGreaterThan(LISTS);
    expect(seen.samples).toBeGreaterThan(20);
    expect(seen.commonLockMs).toBeLessThan(LOCK_MS);
  }, 90_000);
});

const SUBMIT = `mutation ($input: SubmitJobInput!) { submitJob(input: $input) { ... on SubmitJobPayload { job { id } } } }`;
/** Ten lists that no index gives in order, with a filter that nothing fits. */
const HEAVY = `{ ${Array.from({ length: 10 }, (_, i) => `a${i}: jobs(first: 100, orderBy: RUN_AT_ASC, filter: { text: "no ${i}" }) { nodes { id } }`).join(' ')} }`;

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] as number;

async function fillWithFinishedJobs(sql: Sql, count: number): Promise<void> {
  await sql`
    with j as (
      insert into waymark.jobs (id, tenant, task, queue, priority, tags, input_digest, submitted_by, backoff, created_at)
      select gen_random_uuid(), 'default', 'echo', 'default', 0, '{}', '-', 'user:local', '{}', now() - n * interval '1 ms'
      from generate_series(1, ${count}::int) n
      returning id
    )
    insert into waymark.job_states (id, tenant, task, queue, state, max_attempts, rank, run_at, changed_at, finished_at, attempt)
    select id, 'default', 'echo', 'default', 'COMPLETED', 3, now(), now(), now(), now(), 1 from j`;
  await sql`vacuum (analyze) waymark.jobs, waymark.job_states`;
}
