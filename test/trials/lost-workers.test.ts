import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { PostgresServer } from '../chaos/cluster/postgres-server.ts';
import { cleanUp, temporaryDir } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { BEAT, LEASE, RECOVERY, type Trial, trial } from './bench.ts';

const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/${name}.ts`, import.meta.url));
const KILLS = Number(process.env.WAYMARK_TRIAL_KILLS ?? 4);

afterAll(cleanUp);

/** Every step ran in the attempt that saved it, and was saved; what a kill cut off is all that ran twice. */
async function stepsAreRight(t: Trial, lines: string[][], jobIds: string[], n: number): Promise<void> {
  for (const id of jobIds) {
    const mine = lines.filter(([job]) => job === id);
    expect(new Set(mine.map(([, , step]) => step)).size).toBe(n);
    const attempts = await t.attempts(id);
    expect(attempts.map(({ number }) => number)).toEqual(attempts.map((_, i) => i + 1));
    expect(mine.length).toBeLessThanOrEqual(n + attempts.length - 1);
    expect((await t.events(id)).filter((type) => type === 'JobCompleted')).toHaveLength(1);
  }
}

describePostgres('when workers are lost', () => {
  test.concurrent('one that was cut off stops its handlers, and can write nothing when it is back (B05)', async (ctx) => {
    const t = await trial(ctx);
    const { link, env } = await t.wayToPostgres();
    const first = await t.worker(env);
    const { file, lines } = await t.ledger();
    const old = await t.client.submit('deaf', { ms: 6 * LEASE, ledger: file }, { maxAttempts: 1 });
    await eventually(() => expect(lines()).toHaveLength(1));
    link.set({ kind: 'blackhole' });
    expect(await t.ends(old.id)).toBe('FAILED');
    const again = await t.client.submit('deaf', { ms: 6 * LEASE, times: 0, ledger: file }, { maxAttempts: 1 });
    await t.worker();
    link.set({ kind: 'pass' });
    expect(await t.ends(again.id)).toBe('COMPLETED');
    const what = (id: string) => lines().flatMap(([job, , note]) => (job === id ? [note] : []));
    await eventually(() => expect(what(old.id)).toContain('abort:lease-lost'), { timeoutMs: BEAT + 1_000 });
    await eventually(() => expect(what(old.id)).toContain('refused:AttemptAborted'), { timeoutMs: 6 * LEASE });
    expect(what(old.id)).not.toContain('wrote');
    expect(await t.attempts(old.id)).toMatchObject([{ outcome: 'STALLED' }]);
    expect((await t.events(old.id)).at(-1)).toBe('JobFailed');
    expect(await t.attempts(again.id)).toMatchObject([{ number: 1, outcome: 'SUCCEEDED' }]);
    expect(await again.result()).toEqual({ attempt: 1 });
    expect(first.stderr()).not.toContain('"level":60');
  }, 90_000);

  test.concurrent('a job waits for a worker that knows its task, and one that does not leaves it alone (B06)', async (ctx) => {
    const t = await trial(ctx);
    await t.worker({}, fixture('only-echo'));
    const knows = await t.worker({}, fixture('only-steps'));
    const { file, lines } = await t.ledger();
    const { id } = await t.client.submit('steps', { n: 4, ms: 500, ledger: file });
    await eventually(() => expect(lines()).toHaveLength(2));
    knows.kill('SIGKILL');
    await eventually(async () => expect(await t.state(id)).toBe('QUEUED'), { timeoutMs: 2 * RECOVERY });
    expect(await t.waitingOn(id)).toBe('NO_WORKER');
    // The other one sweeps and claims on: long enough to have done wrong.
    const swept = await t.client.submit('echo', 1, { delay: `${RECOVERY}ms` });
    expect(await t.ends(swept.id)).toBe('COMPLETED');
    expect(await t.state(id)).toBe('QUEUED');
    await t.worker({}, fixture('only-steps'));
    expect(await t.ends(id)).toBe('COMPLETED');
    await stepsAreRight(t, lines(), [id], 4);
  }, 90_000);

  test.concurrent("a job that beats is nobody else's, however long it runs (B07)", async (ctx) => {
    const t = await trial(ctx);
    const { file, lines } = await t.ledger();
    await Promise.all([t.worker(), t.worker(), t.worker()]);
    const { id } = await t.client.submit('steps', { n: 60, ms: (10 * LEASE) / 60, ledger: file });
    expect(await t.ends(id, 20 * LEASE)).toBe('COMPLETED');
    expect(await t.attempts(id)).toMatchObject([{ number: 1, outcome: 'SUCCEEDED' }]);
    expect(lines().map(([, , step]) => step)).toEqual(Array.from({ length: 60 }, (_, i) => String(i)));
  }, 120_000);

  test.concurrent(`${KILLS} × kill -9: every job goes on behind its last checkpoint, soon (B09)`, async (ctx) => {
    const random = seededRandom();
    const t = await trial(ctx);
    const { file, lines } = await t.ledger();
    const fleet = [await t.worker(), await t.worker()];
    const ids: string[] = [];
    const killedAt = new Map<number, number>();
    for (let kill = 0; kill < KILLS; kill++) {
      const jobs = await Promise.all(
        Array.from({ length: 20 }, () => t.client.submit('steps', { n: 5, ms: 200, ledger: file })),
      );
      ids.push(...jobs.map((job) => job.id));
      const before = lines().length;
      await eventually(() => expect(lines().length).toBeGreaterThan(before + 10));
      const index = Math.floor(random() * fleet.length);
      killedAt.set(fleet[index]?.pid ?? 0, Date.now());
      fleet[index]?.kill('SIGKILL');
      await fleet[index]?.ended;
      fleet[index] = await t.worker();
    }
    for (const id of ids) expect(await t.ends(id, 6 * RECOVERY)).toBe('COMPLETED');
    await stepsAreRight(t, lines(), ids, 5);
    const lost = await t.sql<{ pid: number; next: Date }[]>`
      select w.pid, b.started_at as next
      from waymark.attempts a join waymark.workers w on w.id = a.worker_id
      join waymark.attempts b on b.job_id = a.job_id and b.number = a.number + 1
      where a.outcome = 'STALLED'`;
    const times = lost.map(({ pid, next }) => next.getTime() - (killedAt.get(pid) ?? 0)).sort((a, b) => a - b);
    console.log(`from kill -9 to the next attempt: ${times.length} jobs, at most ${times.at(-1)} ms`);
    expect(times.length).toBeGreaterThan(0);
    // The promise is RECOVERY; a machine that runs many trials at once may be slow, but not by a lease's length.
    expect(times.at(-1)).toBeLessThan(RECOVERY + LEASE);
  }, 240_000);

  test.concurrent('all of them, together with Postgres: every job ends without a hand on the tables (B10)', async (ctx) => {
    const server = await PostgresServer.create(join(await temporaryDir(), 'postgres.log'));
    ctx.onTestFinished(() => server.stop());
    const t = await trial(ctx, {}, { databaseUrl: server.url });
    const { file, lines } = await t.ledger();
    const fleet = [await t.worker(), await t.worker()];
    const jobs = await Promise.all(
      Array.from({ length: 20 }, () => t.client.submit('steps', { n: 6, ms: 300, ledger: file })),
    );
    await eventually(() => expect(lines().length).toBeGreaterThan(20));
    await server.kill('SIGQUIT');
    for (const worker of fleet) worker.kill('SIGKILL');
    await server.start();
    await Promise.all([t.worker(), t.worker()]);
    for (const { id } of jobs) expect(await t.ends(id, 6 * RECOVERY)).toBe('COMPLETED');
    await stepsAreRight(
      t,
      lines(),
      jobs.map((job) => job.id),
      6,
    );
  }, 120_000);

  test.concurrent('those that start, and APIs that restart, take nothing that runs (B16)', async (ctx) => {
    const t = await trial(ctx);
    const { file, lines } = await t.ledger();
    await t.worker();
    const second = await t.api();
    const jobs = await Promise.all(
      Array.from({ length: 10 }, () => t.client.submit('steps', { n: 20, ms: 200, ledger: file })),
    );
    await eventually(() => expect(lines().length).toBeGreaterThan(10));
    second.kill('SIGTERM');
    await Promise.all([t.worker(), t.worker(), t.worker(), t.api()]);
    for (const { id } of jobs) {
      expect(await t.ends(id)).toBe('COMPLETED');
      expect(await t.attempts(id)).toMatchObject([{ number: 1, outcome: 'SUCCEEDED' }]);
    }
    expect(lines()).toHaveLength(200);
  }, 90_000);

  test.concurrent('between two steps, the job goes on at the next one, and those behind it follow (B19)', async (ctx) => {
    const t = await trial(ctx, { WAYMARK_CONCURRENCY: '1' });
    const { file, lines } = await t.ledger();
    let worker = await t.worker();
    const { id } = await t.client.submit('steps', { n: 4, ms: 300, ledger: file });
    const behind = await Promise.all(Array.from({ length: 5 }, (_, i) => t.client.submit('echo', i)));
    for (let saved = 1; saved <= 3; saved++) {
      await eventually(
        async () => {
          const [row] = await t.sql<{ n: number }[]>`select count(*)::int as n from waymark.checkpoints`;
          expect(row?.n).toBeGreaterThanOrEqual(saved);
        },
        { timeoutMs: 3 * RECOVERY, intervalMs: 5 },
      );
      worker.kill('SIGKILL');
      worker = await t.worker();
    }
    expect(await t.ends(id)).toBe('COMPLETED');
    await stepsAreRight(t, lines(), [id], 4);
    for (const job of behind) expect(await t.ends(job.id)).toBe('COMPLETED');
  }, 120_000);
});
