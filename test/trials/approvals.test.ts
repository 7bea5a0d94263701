import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { RECOVERY, type Trial, trial } from './bench.ts';

const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/${name}.ts`, import.meta.url));
const FAMILIES = Number(process.env.WAYMARK_TRIAL_FAMILIES ?? 6);
/** A dead worker is noticed sooner, for trials of many kills. */
const QUICK = { WAYMARK_HEARTBEAT: '300ms', WAYMARK_LEASE: '1s', WAYMARK_SWEEP: '200ms', WAYMARK_POLL: '200ms' };

afterAll(cleanUp);

const waits = (t: Trial, id: string) =>
  eventually(async () => expect(await t.state(id)).toBe('WAITING_FOR_REVIEW'), { timeoutMs: 30_000 });

/** What the ledger says of a job, in order. */
const notesOf = (lines: string[][], id: string) => lines.flatMap(([job, , note]) => (job === id ? [note] : []));

describePostgres('a job that waits', () => {
  test.concurrent('for a review outlives its worker and the API, holds no slot, and repeats no step (B30)', async (ctx) => {
    const t = await trial(ctx, { WAYMARK_CONCURRENCY: '1' });
    const { file, lines } = await t.ledger();
    const worker = await t.worker();
    const { id } = await t.client.submit('gate', { ledger: file });
    await waits(t, id);
    expect(await t.waitingOn(id)).toBe('REVIEW');
    const other = await t.client.submit('echo', 1);
    expect(await t.ends(other.id)).toBe('COMPLETED');

    for (const program of [worker, t.first]) program.kill('SIGKILL');
    await Promise.all([worker.ended, t.first.ended]);
    const api = await t.api();
    await t.worker();
    expect(await t.state(id)).toBe('WAITING_FOR_REVIEW');
    const { approval } = await t.clientOf(api).approve(id, { data: { say: 'yes' }, comment: 'good' });
    expect(approval).toMatchObject({ state: 'APPROVED', decidedBy: 'user:local' });
    expect(await t.ends(id)).toBe('COMPLETED');
    expect(await t.clientOf(api).job(id).result()).toEqual({ by: 'user:local', said: 'yes' });
    expect(notesOf(lines(), id)).toEqual(['A', 'B']);
    expect(await t.attempts(id)).toMatchObject([
      { number: 1, outcome: 'SUSPENDED' },
      { number: 2, outcome: 'SUCCEEDED' },
    ]);
  }, 90_000);

  test.concurrent('for a review loses no decision with its worker, killed behind the decision and before the resume', async (ctx) => {
    const random = seededRandom();
    const t = await trial(ctx, QUICK);
    const { file, lines } = await t.ledger();
    let worker = await t.worker();
    const ids: string[] = [];
    let left = 0;
    for (let round = 0; round < 3; round++) {
      const jobs = await Promise.all(Array.from({ length: 10 }, () => t.client.submit('gate', { ledger: file })));
      for (const { id } of jobs) await waits(t, id);
      ids.push(...jobs.map(({ id }) => id));
      // In the first round it is dead before anybody decides: what is decided then is all that is known.
      if (round === 0) worker.kill('SIGKILL');
      const decisions = jobs.map(({ id }) => t.client.approve(id, { data: { say: id } }));
      await pause(round === 0 ? 0 : random() * 100);
      worker.kill('SIGKILL');
      await Promise.all([...decisions, worker.ended]);
      for (const { id } of jobs) if ((await t.state(id)) === 'QUEUED') left++;
      worker = await t.worker();
    }
    let cutOff = 0;
    for (const id of ids) {
      expect(await t.ends(id, 6 * RECOVERY)).toBe('COMPLETED');
      expect(await t.client.job(id).result()).toEqual({ by: 'user:local', said: id });
      const stalled = (await t.attempts(id)).filter(({ outcome }) => outcome === 'STALLED').length;
      const [a, ...b] = notesOf(lines(), id);
      expect([a, new Set(b)]).toEqual(['A', new Set(['B'])]);
      // What a kill cuts off in flight is all that may run again.
      expect(b.length).toBeLessThanOrEqual(1 + stalled);
      const events = await t.events(id);
      for (const once of ['ApprovalRequested', 'ApprovalDecided', 'JobCompleted']) {
        expect(events.filter((type) => type === once)).toHaveLength(1);
      }
      cutOff += stalled;
    }
    console.log(
      `${ids.length} decisions, ${left} of them made or left without a worker, ${cutOff} attempts behind them cut off`,
    );
    expect(left).toBeGreaterThanOrEqual(10);
  }, 180_000);

  test.concurrent(
    `for children has each of them once, and their results in order, over ${FAMILIES} × kill -9 of its worker`,
    async (ctx) => {
      const random = seededRandom();
      const t = await trial(ctx, QUICK);
      const { file, lines } = await t.ledger();
      await t.worker({}, fixture('only-relative'));
      let worker = await t.worker({}, fixture('only-family'));
      const ids: string[] = [];
      for (let kill = 0; kill < FAMILIES; kill++) {
        const jobs = await Promise.all(
          Array.from({ length: 4 }, () => t.client.submit('family', { n: 3, ms: 10, ledger: file })),
        );
        ids.push(...jobs.map(({ id }) => id));
        const mine = () => lines().filter(([id]) => jobs.some((job) => job.id === id));
        await eventually(() => expect(mine().length).toBeGreaterThan(0), { timeoutMs: 20_000, intervalMs: 1 });
        // From its first call, over both rounds of children, to its end.
        await pause(random() * 300);
        worker.kill('SIGKILL');
        await worker.ended;
        worker = await t.worker({}, fixture('only-family'));
        // Every other time what was cut off may end: else no kill would ever find the second round.
        if (kill % 2 === 1) for (const id of ids.slice(-8)) await t.ends(id, 6 * RECOVERY);
      }
      for (const id of ids) {
        expect(await t.ends(id, 6 * RECOVERY)).toBe('COMPLETED');
        expect(await t.client.job(id).result()).toEqual([0, 1, 2, 3, 4, 5]);
        const events = await t.events(id);
        expect(events.filter((type) => type === 'JobCompleted')).toHaveLength(1);
      }
      const children = await t.sql<{ parents: number; all: number; right: number }[]>`
      select count(distinct j.parent_id)::int as parents, count(*)::int as all,
             (count(*) filter (where s.state = 'COMPLETED' and s.attempt = 1))::int as right
      from waymark.jobs j join waymark.job_states s on s.id = j.id where j.parent_id is not null`;
      expect(children).toMatchObject([{ parents: ids.length, all: 6 * ids.length, right: 6 * ids.length }]);
      const cut = await t.sql<{ saved: number; n: number }[]>`
      select (select count(*)::int from waymark.checkpoints c
              where c.job_id = a.job_id and c.kind = 'CHILDREN' and c.created_at <= a.started_at) as saved,
             count(*)::int as n
      from waymark.attempts a join waymark.jobs j on j.id = a.job_id
      where a.outcome = 'STALLED' and j.task = 'family' group by 1 order by 1`;
      console.log(
        `${ids.length} parents; attempts cut off, by the rounds submitted before: ${JSON.stringify([...cut])}`,
      );
      expect(cut.length).toBeGreaterThan(0);
    },
    60_000 + FAMILIES * 15_000,
  );
});
