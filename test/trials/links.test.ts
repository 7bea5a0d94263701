import { afterAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { hasRedisServer, startRedis } from '../events/redis-server.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { BEAT, LEASE, POLL, RECOVERY, SLACK, type Trial, trial } from './bench.ts';

afterAll(cleanUp);

/** From here to the start of each attempt, in milliseconds. */
async function startDelays(t: Trial, since: number, jobIds: string[]): Promise<number[]> {
  for (const id of jobIds) await t.ends(id);
  const rows = await t.sql<
    { at: Date }[]
  >`select started_at as at from waymark.attempts where started_at >= ${new Date(since)}`;
  expect(rows).toHaveLength(jobIds.length);
  return rows.map(({ at }) => at.getTime() - since);
}

describePostgres('when connections break', () => {
  test.skipIf(!hasRedisServer).concurrent(
    'Redis restarted five times in a row: work goes on without a restart of ours (B14)',
    async (ctx) => {
      const redis = await startRedis();
      ctx.onTestFinished(() => redis.stop());
      const t = await trial(ctx, { REDIS_URL: redis.url });
      await t.worker();
      await t.ends((await t.client.submit('echo', 0)).id);
      for (let i = 0; i < 5; i++) {
        await redis.stop();
        await redis.start();
      }
      const since = Date.now();
      const jobs = await Promise.all(Array.from({ length: 20 }, (_, i) => t.client.submit('echo', i)));
      const delays = await startDelays(
        t,
        since,
        jobs.map((job) => job.id),
      );
      expect(Math.max(...delays)).toBeLessThan(POLL + SLACK);
    },
    90_000,
  );

  test.concurrent('the way to Postgres cut five times in a row: likewise, and nothing is run twice (B14)', async (ctx) => {
    const t = await trial(ctx);
    const { link, env } = await t.wayToPostgres();
    const worker = await t.worker(env);
    await t.ends((await t.client.submit('echo', 0)).id);
    const napping = await t.client.submit('nap', { ms: 2 * LEASE });
    await t.runs(napping.id);
    for (let i = 0; i < 5; i++) {
      link.set({ kind: 'cut' });
      link.set({ kind: 'pass' });
      await eventually(() => expect(link.connections).toBeGreaterThan(0));
    }
    const since = Date.now();
    const jobs = await Promise.all(Array.from({ length: 20 }, (_, i) => t.client.submit('echo', i)));
    const delays = await startDelays(
      t,
      since,
      jobs.map((job) => job.id),
    );
    expect(Math.max(...delays)).toBeLessThan(POLL + SLACK);
    expect(await t.ends(napping.id)).toBe('COMPLETED');
    expect(await t.attempts(napping.id)).toHaveLength(1);
    worker.kill('SIGTERM');
    expect((await worker.ended).code).toBe(0);
  }, 90_000);

  test.concurrent('jobs due far behind a lease run once each, in time and not before (B15)', async (ctx) => {
    const t = await trial(ctx);
    await Promise.all([t.worker(), t.worker(), t.worker()]);
    const jobs = await Promise.all(
      Array.from({ length: 50 }, (_, i) => t.client.submit('echo', i, { delay: `${4 * LEASE}ms` })),
    );
    for (const { id } of jobs) expect(await t.ends(id, 10 * LEASE)).toBe('COMPLETED');
    const late = await t.sql<{ ms: number; n: number }[]>`
      select extract(epoch from min(a.started_at) - min(s.run_at)) * 1000 as ms, count(*)::int as n
      from waymark.attempts a join waymark.job_states s on s.id = a.job_id group by a.job_id`;
    expect(late).toHaveLength(50);
    for (const { ms, n } of late) {
      expect(n).toBe(1);
      expect(Number(ms)).toBeGreaterThanOrEqual(0);
      expect(Number(ms)).toBeLessThan(POLL + SLACK);
    }
  }, 90_000);

  test.skipIf(!hasRedisServer).concurrent(
    'a cancel reaches a running handler within a beat while Redis is away (B22), not only after a lease (B27)',
    async (ctx) => {
      const redis = await startRedis();
      ctx.onTestFinished(() => redis.stop());
      const t = await trial(ctx, { REDIS_URL: redis.url, WAYMARK_LEASE: '60s' });
      await t.worker();
      const jobs = await Promise.all([1, 2].map(() => t.client.submit('nap', { ms: 60_000 })));
      for (const { id } of jobs) await t.runs(id);
      const times: number[] = [];
      const cancel = async (id: string): Promise<void> => {
        const since = Date.now();
        await t.client.cancel(id, { reason: 'enough' });
        expect(await t.ends(id)).toBe('CANCELED');
        const [row] = await t.sql<
          { at: Date }[]
        >`select finished_at as at from waymark.job_states where finished_at >= ${new Date(since)}`;
        times.push((row?.at.getTime() ?? Number.POSITIVE_INFINITY) - since);
      };
      await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await cancel(jobs[0]?.id ?? '');
      await redis.stop();
      await cancel(jobs[1]?.id ?? '');
      for (const ms of times) expect(ms).toBeLessThan(BEAT + SLACK);
    },
    90_000,
  );

  test.skipIf(!hasRedisServer).concurrent(
    'jobs that became due in an outage of both stores run when they are back, without other traffic (B50)',
    async (ctx) => {
      const redis = await startRedis();
      ctx.onTestFinished(() => redis.stop());
      const t = await trial(ctx, { REDIS_URL: redis.url });
      const { link, env } = await t.wayToPostgres();
      await t.worker(env);
      // Nobody else stages or claims.
      const jobs = await Promise.all(Array.from({ length: 20 }, (_, i) => t.client.submit('echo', i, { delay: '4s' })));
      t.first.kill('SIGTERM');
      await t.first.ended;
      await redis.stop();
      link.set({ kind: 'cut' });
      const [due] = await t.sql<{ at: Date }[]>`select max(run_at) as at from waymark.job_states`;
      await eventually(() => expect(Date.now()).toBeGreaterThan((due?.at.getTime() ?? 0) - 1_000));
      await redis.start();
      link.set({ kind: 'pass' });
      for (const { id } of jobs) expect(await t.ends(id)).toBe('COMPLETED');
      const [worst] = await t.sql<{ ms: number }[]>`
      select max(extract(epoch from a.started_at - s.run_at)) * 1000 as ms
      from waymark.attempts a join waymark.job_states s on s.id = a.job_id`;
      expect(Number(worst?.ms)).toBeLessThan(2_000 + SLACK);
    },
    90_000,
  );

  test.skipIf(!hasRedisServer).concurrent(
    'a subscription that died comes back by itself, and meanwhile the poll finds the work (B54)',
    async (ctx) => {
      const redis = await startRedis();
      ctx.onTestFinished(() => redis.stop());
      const t = await trial(ctx, { REDIS_URL: redis.url });
      await t.worker();
      const dispatch = async (n: number): Promise<number[]> => {
        const times: number[] = [];
        for (let i = 0; i < n; i++) {
          const { id } = await t.client.submit('echo', i);
          await t.ends(id);
          const [row] = await t.sql<{ ms: number }[]>`
          select extract(epoch from a.started_at - j.created_at) * 1000 as ms
          from waymark.attempts a join waymark.jobs j on j.id = a.job_id order by a.started_at desc limit 1`;
          times.push(Number(row?.ms));
        }
        return times.sort((a, b) => a - b);
      };
      const median = (times: number[]) => times[Math.floor(times.length / 2)] ?? 0;
      const before = median(await dispatch(15));
      await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      const meanwhile = await dispatch(5);
      expect(meanwhile.at(-1)).toBeLessThan(POLL + SLACK);
      // Hints come again: no longer bound to the poll.
      await eventually(async () => expect(median(await dispatch(5))).toBeLessThan(Math.max(2 * before, POLL / 4)), {
        timeoutMs: 15_000,
      });
    },
    90_000,
  );

  test.concurrent('clients killed at the server every second under load: no process ends, nothing is lost (B71)', async (ctx) => {
    const t = await trial(ctx);
    const { file, lines } = await t.ledger();
    const fleet = [t.first, await t.worker(), await t.worker()];
    const jobs = await Promise.all(
      Array.from({ length: 10 }, () => t.client.submit('steps', { n: 20, ms: 400, ledger: file })),
    );
    const more: Promise<{ id: string }>[] = [];
    for (let round = 0; round < 8; round++) {
      const n = lines().length;
      await eventually(() => expect(lines().length).toBeGreaterThan(n + 10), { timeoutMs: 30_000 });
      more.push(...Array.from({ length: 5 }, (_, i) => t.client.submit('echo', i)));
      await t.sql`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name like 'waymark%'`;
    }
    for (const { id } of [...jobs, ...(await Promise.all(more))]) expect(await t.ends(id, 60_000)).toBe('COMPLETED');
    for (const { id } of jobs) expect(await t.attempts(id)).toHaveLength(1);
    expect(lines()).toHaveLength(200);
    for (const service of fleet) service.kill('SIGTERM');
    for (const service of fleet) expect((await service.ended).code).toBe(0);
  }, 240_000);

  test.concurrent("a job that runs while its worker restarts its connections is nobody else's within the lease", async (ctx) => {
    const t = await trial(ctx);
    const { link, env } = await t.wayToPostgres();
    await t.worker(env);
    const { id } = await t.client.submit('nap', { ms: 2 * RECOVERY });
    await t.runs(id);
    await t.worker();
    for (let i = 0; i < 6; i++) {
      link.set({ kind: i % 2 ? 'blackhole' : 'cut' });
      await eventually(() => expect(link.touched).toBeGreaterThan(0), { timeoutMs: LEASE });
      link.set({ kind: 'pass' });
    }
    expect(await t.ends(id)).toBe('COMPLETED');
    expect(await t.attempts(id)).toHaveLength(1);
  }, 90_000);
});
