import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { PostgresServer } from '../chaos/cluster/postgres-server.ts';
import { cleanUp, type Service, start, temporaryDir } from '../cli/program.ts';
import { hasRedisServer, startRedis } from '../events/redis-server.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { SLACK, TASKS, type Trial, trial } from './bench.ts';

/** In CI short; the promise is for 60 s, and longer changes nothing but the wait: `WAYMARK_TRIAL_OUTAGE=60000`. */
const OUTAGE_MS = Number(process.env.WAYMARK_TRIAL_OUTAGE ?? 8_000);
const BACK_WITHIN_MS = 5_000;
const LINES_PER_SECOND = 5;
/** Share of one core. */
const CPU = 0.2;

afterAll(cleanUp);

/** Seconds of processor time that a process has used. */
async function cpuSeconds(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

interface Watch {
  service: Service;
  lines: number;
  cpu: number;
}
const watch = (services: Service[]): Promise<Watch[]> =>
  Promise.all(
    services.map(async (service) => ({ service, lines: linesOf(service), cpu: await cpuSeconds(service.pid) })),
  );
const linesOf = (service: Service) => service.stderr().split('\n').length;

/** What each has logged and worked since, per second. */
async function expectCalm(before: Watch[], ms: number): Promise<void> {
  for (const { service, lines, cpu } of before) {
    const seconds = ms / 1_000;
    const perSecond = (linesOf(service) - lines) / seconds;
    const share = ((await cpuSeconds(service.pid)) - cpu) / seconds;
    console.log(`${perSecond.toFixed(2)} lines/s, ${(share * 100).toFixed(1)} % of a core`);
    expect(perSecond).toBeLessThanOrEqual(LINES_PER_SECOND);
    expect(share).toBeLessThan(CPU);
  }
}

async function ask(t: Trial): Promise<{ code: string | undefined; ms: number }> {
  const since = performance.now();
  const response = await fetch(`${t.first.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: 'mutation { submitJob(input: { task: "echo", input: 1 }) { __typename } }' }),
  });
  const { errors } = (await response.json()) as { errors?: { extensions?: { code?: string } }[] };
  return { code: errors?.[0]?.extensions?.code, ms: performance.now() - since };
}

describePostgres('a store that is away', () => {
  test.concurrent('Postgres: the same processes, few lines, little work, quick refusals, soon back, no budget burned (P14, B53)', async (ctx) => {
    const server = await PostgresServer.create(join(await temporaryDir(), 'postgres.log'));
    ctx.onTestFinished(() => server.stop());
    const t = await trial(ctx, {}, { databaseUrl: server.url });
    const worker = await t.worker();
    const { file, lines } = await t.ledger();
    const jobs = await Promise.all(
      Array.from({ length: 10 }, () => t.client.submit('steps', { n: 20, ms: 500, ledger: file })),
    );
    await eventually(() => expect(lines().length).toBeGreaterThan(20));
    await server.kill('SIGINT');
    const before = await watch([t.first, worker]);
    const since = performance.now();
    const answers: { code: string | undefined; ms: number }[] = [];
    while (performance.now() - since < OUTAGE_MS) {
      answers.push(await ask(t));
      await sleep(500);
    }
    await expectCalm(before, performance.now() - since);
    for (const { code } of answers) expect(code).toBe('UNAVAILABLE');
    expect(
      answers
        .map(({ ms }) => ms)
        .toSorted((a, b) => a - b)
        .at(-1),
    ).toBeLessThan(SLACK);
    expect((await fetch(`${t.first.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${t.first.url}/readyz`)).status).toBe(503);

    await server.start();
    const back = performance.now();
    const { id } = await eventually(() => t.client.submit('echo', 'again'), { intervalMs: 100 });
    await t.ends(id);
    console.log(`${Math.round(performance.now() - back)} ms from the return to a finished job`);
    expect(performance.now() - back).toBeLessThan(BACK_WITHIN_MS + SLACK);
    for (const job of jobs) expect(await t.ends(job.id, 60_000)).toBe('COMPLETED');
    const [row] = await t.sql<{ failures: number }[]>`select max(failures)::int as failures from waymark.job_states`;
    expect(row?.failures).toBe(0);
    for (const service of [t.first, worker]) {
      service.kill('SIGTERM');
      expect((await service.ended).code).toBe(0);
    }
  }, 240_000);

  test.skipIf(!hasRedisServer).concurrent(
    'Redis: everything works on, only what others do is seen later (P13, B78)',
    async (ctx) => {
      const redis = await startRedis();
      ctx.onTestFinished(() => redis.stop());
      const t = await trial(ctx, { REDIS_URL: redis.url });
      const worker = await t.worker();
      await t.ends((await t.client.submit('echo', 0)).id);
      await redis.stop();
      const before = await watch([t.first, worker]);
      const since = performance.now();
      const watched = await t.client.submit('steps', { n: 4, ms: OUTAGE_MS / 5, ledger: (await t.ledger()).file });
      const seen = (async () => {
        const types: string[] = [];
        for await (const event of t.client.job(watched.id).events()) types.push(event.type);
        return types;
      })();
      const submits: number[] = [];
      const jobs = await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          const at = performance.now();
          const job = await t.client.submit('burst', { n: 100 + i });
          submits.push(performance.now() - at);
          return job;
        }),
      );
      const canceled = await t.client.submit('nap', { ms: 60_000 });
      await t.runs(canceled.id);
      await t.client.cancel(canceled.id);
      for (const { id } of jobs) expect(await t.ends(id)).toBe('COMPLETED');
      expect(await t.ends(canceled.id)).toBe('CANCELED');
      expect(await t.ends(watched.id, 60_000)).toBe('COMPLETED');
      expect(await seen).toEqual(await t.events(watched.id));
      const slowest = submits.toSorted((a, b) => a - b).at(-1) ?? 0;
      console.log(`20 submits at once without Redis: the slowest took ${Math.round(slowest)} ms`);
      // Nobody waits for a connection to Redis, which would take seconds.
      expect(slowest).toBeLessThan(SLACK);
      await eventually(() => expect(performance.now() - since).toBeGreaterThan(OUTAGE_MS), {
        timeoutMs: OUTAGE_MS * 2,
      });
      const [calm] = before;
      expect((linesOf(t.first) - (calm?.lines ?? 0)) / ((performance.now() - since) / 1_000)).toBeLessThan(
        LINES_PER_SECOND,
      );
      await redis.start();
      await eventually(async () => expect(await redis.command('PUBSUB', 'NUMPAT')).toBeDefined());
      const { id } = await t.client.submit('echo', 'again');
      expect(await t.ends(id)).toBe('COMPLETED');
      for (const service of [t.first, worker]) {
        service.kill('SIGTERM');
        expect((await service.ended).code).toBe(0);
      }
    },
    240_000,
  );

  test.concurrent('programs that start while Postgres is away wait for it, and say so once (B71)', async (ctx) => {
    const server = await PostgresServer.create(join(await temporaryDir(), 'postgres.log'));
    ctx.onTestFinished(() => server.stop());
    await server.kill('SIGINT');
    const env = { DATABASE_URL: server.url, PORT: '0' };
    const programs = [start(['api'], env), start(['worker', '--tasks', TASKS], env)];
    for (const program of programs) {
      await eventually(() => expect(program.stderr()).toContain('cannot be reached'), { timeoutMs: 30_000 });
    }
    await server.start();
    for (const program of programs) {
      await eventually(() => expect(program.stdout()).toContain('http://'), { timeoutMs: 30_000 });
      expect(program.stderr().match(/waiting up to/g)).toHaveLength(1);
      program.kill('SIGTERM');
      expect((await program.ended).code).toBe(0);
    }
  }, 120_000);
});
