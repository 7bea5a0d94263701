import { afterAll, expect, test } from 'vitest';
import { cleanUp, type Service } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { GRACE, LEASE, SLACK, trial } from './bench.ts';

const DEPLOYS = Number(process.env.WAYMARK_TRIAL_DEPLOYS ?? 6);
const STEPS = 5;
const HAND_OVER_MS = 2_000 + SLACK;

afterAll(cleanUp);

/** When the service logged a line that begins so. */
function timeOf(service: Service, message: string): number {
  const lines = service.stderr().split('\n').filter(Boolean);
  const line = lines
    .map((text) => JSON.parse(text) as { time: string; msg: string })
    .find(({ msg }) => msg.startsWith(message));
  return Date.parse(line?.time ?? '');
}

describePostgres('SIGTERM', () => {
  test.concurrent('records what ends within the grace time, hands the rest back at once, and exits with 0 (B95)', async (ctx) => {
    const t = await trial(ctx);
    const worker = await t.worker();
    const { file, lines } = await t.ledger();
    const ends = await t.client.submit('nap', { ms: 1_500 });
    const throws = await t.client.submit(
      'fails',
      { ways: ['hang', 'hang', 'hang'] },
      { timeout: '1500ms', maxAttempts: 1 },
    );
    const deaf = await t.client.submit('deaf', { ms: 60_000, ledger: file });
    for (const { id } of [ends, throws, deaf]) await t.runs(id);
    const next = await t.worker();
    worker.kill('SIGTERM');
    expect((await worker.ended).code).toBe(0);
    expect(timeOf(worker, 'stopped') - timeOf(worker, 'stopping')).toBeLessThan(GRACE + 2_000 + SLACK);
    expect(await t.state(ends.id)).toBe('COMPLETED');
    expect(await t.attempts(ends.id)).toHaveLength(1);
    expect(await t.state(throws.id)).toBe('FAILED');
    expect(await t.attempts(throws.id)).toMatchObject([{ outcome: 'TIMED_OUT', code: 'TIMEOUT' }]);
    await eventually(async () =>
      expect(await t.attempts(deaf.id)).toMatchObject([{ outcome: 'RELEASED' }, { number: 2 }]),
    );
    const [times] = await t.sql<{ ms: number; failures: number }[]>`
      select extract(epoch from b.started_at - a.finished_at) * 1000 as ms, s.failures
      from waymark.attempts a join waymark.attempts b on b.job_id = a.job_id and b.number = 2
      join waymark.job_states s on s.id = a.job_id where a.outcome = 'RELEASED'`;
    expect(Number(times?.ms)).toBeLessThan(HAND_OVER_MS);
    expect(times?.failures).toBe(0);
    expect(lines().filter(([, attempt]) => attempt === '1').length).toBeGreaterThan(5);
    expect(next.stderr()).not.toContain('lease');
  }, 60_000);

  test.concurrent('a second one ends the process at once; its jobs go on elsewhere after the lease', async (ctx) => {
    const t = await trial(ctx);
    const worker = await t.worker();
    const { id } = await t.client.submit('nap', { ms: 4 * LEASE });
    await t.runs(id);
    worker.kill('SIGTERM');
    await eventually(() => expect(worker.stderr()).toContain('stopping'));
    const since = Date.now();
    worker.kill('SIGTERM');
    await worker.ended;
    expect(Date.now() - since).toBeLessThan(1_000);
    await t.worker();
    await t.runs(id, 2);
  }, 60_000);

  test.concurrent(`${DEPLOYS} deployments in a row lose nothing, repeat nothing and burn no budget (P16)`, async (ctx) => {
    const t = await trial(ctx, { WAYMARK_GRACE: '300ms' });
    const { file, lines } = await t.ledger();
    let worker: Service = await t.worker();
    const jobs: { id: string }[] = [];
    for (let deploy = 0; deploy < DEPLOYS; deploy++) {
      const next = await t.worker();
      const before = lines().length;
      const submit = () => t.client.submit('steps', { n: STEPS, ms: 300, ledger: file });
      jobs.push(...(await Promise.all(Array.from({ length: 10 }, submit))));
      await eventually(() => expect(lines().length).toBeGreaterThan(before + 10));
      worker.kill('SIGTERM');
      expect((await worker.ended).code).toBe(0);
      worker = next;
    }
    for (const { id } of jobs) {
      expect(await t.ends(id, 60_000)).toBe('COMPLETED');
      const attempts = await t.attempts(id);
      expect(attempts.slice(0, -1).every(({ outcome }) => outcome === 'RELEASED')).toBe(true);
      const [row] = await t.sql<{ n: number; steps: number }[]>`
        select max(s.failures)::int as n, count(c.key)::int as steps
        from waymark.job_states s join waymark.checkpoints c on c.job_id = s.id
        where s.id = ${t.uuid(id)}`;
      expect(row).toEqual({ n: 0, steps: STEPS });
      const mine = lines().filter(([job]) => job === id);
      expect(mine.length).toBeLessThanOrEqual(STEPS + attempts.length - 1);
    }
    const [worst] = await t.sql<{ ms: number; n: number }[]>`
      select max(extract(epoch from b.started_at - a.finished_at) * 1000) as ms, count(*)::int as n
      from waymark.attempts a join waymark.attempts b on b.job_id = a.job_id and b.number = a.number + 1`;
    console.log(`handed back ${worst?.n} times; at most ${Math.round(Number(worst?.ms))} ms until the next start`);
    expect(worst?.n).toBeGreaterThan(DEPLOYS);
    expect(Number(worst?.ms)).toBeLessThan(HAND_OVER_MS);
  }, 180_000);
});
