import { describe, expect, test } from 'vitest';
import { NotFound } from '../../src/core/errors.ts';
import { newUuid } from '../../src/core/ids.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { dependencyBench } from './dependency-bench.ts';

describe.each(databases())('dependencies on $name', ({ open }) => {
  const setUp = async () => dependencyBench(await open());

  test('a job waits, DEFERRED, until every job it depends on has completed, and is queued once', async () => {
    const b = await setUp();
    const [x, y] = [await b.submit(), await b.submit()];
    const d = await b.submit(b.after(x, y));
    expect(await b.row(d)).toMatchObject({ state: 'DEFERRED', waiting_kind: 'DEPENDENCIES', depends: true });
    await b.finish(x);
    expect(await b.state(d)).toBe('DEFERRED');
    await b.finish(y);
    await b.becomes(d, 'QUEUED');
    expect((await b.events(d)).map((e) => e.type)).toEqual(['JobSubmitted', 'JobQueued']);
    await b.finish(d);
    expect(await b.state(d)).toBe('COMPLETED');
    await eventually(async () => expect(await b.followUps()).toBe(0));
  });

  test('a job that depends on completed jobs only is queued at once', async () => {
    const b = await setUp();
    const x = await b.submit();
    await b.finish(x);
    expect(await b.state(await b.submit(b.after(x)))).toBe('QUEUED');
  });

  test('what is due later is SCHEDULED when its dependencies are done before', async () => {
    const b = await setUp();
    const x = await b.submit();
    const d = await b.submit({ ...b.after(x), delayMs: 3_600_000 });
    expect(await b.state(d)).toBe('DEFERRED');
    await b.finish(x);
    await b.becomes(d, 'SCHEDULED');
  });

  test.each([
    ['CANCEL', 'CANCELED'],
    ['FAIL', 'FAILED'],
    ['CONTINUE', 'QUEUED'],
  ] as const)('policy %s: after a failed upstream job the dependant is %s', async (policy, state) => {
    const b = await setUp();
    const x = await b.submit({ title: 'extract' });
    const d = await b.submit(b.after([x, policy]));
    await b.finish(x, 'fail');
    await b.becomes(d, state);
    const row = await b.row(d);
    const said = policy === 'FAIL' ? (row.error as { message: string }).message : row.cancel_reason;
    if (policy !== 'CONTINUE') expect(said).toMatch(/^it depends on extract \(job_\w{26}\), which failed: disk full$/);
    if (policy === 'FAIL') expect(row.error).toMatchObject({ code: 'DEPENDENCY_FAILED', retryable: false });
  });

  test('a chain behind a canceled job is canceled all the way down, each naming the job before it', async () => {
    const b = await setUp();
    const chain = [await b.submit({ title: 'n0' })];
    for (let i = 1; i < 300; i++) chain.push(await b.submit({ title: `n${i}`, ...b.after(chain[i - 1] as string) }));
    await b.engine.jobs.cancel(me, chain[0] as string, { reason: 'wrong file' });
    expect(await b.state(chain[299] as string)).toBe('CANCELED');
    expect((await b.row(chain[1] as string)).cancel_reason).toMatch(/on n0 \(job_.*which was canceled: wrong file$/);
    expect((await b.row(chain[299] as string)).cancel_reason).toMatch(/on n298 \(job_.*which was canceled$/);
    await eventually(async () => expect(await b.followUps()).toBe(0));
    for (const id of chain) expect((await b.events(id)).at(-1)?.type).toBe('JobCanceled');
  });

  test('a dependant on a job that has failed before gets its state at once', async () => {
    const b = await setUp();
    const x = await b.submit();
    await b.finish(x, 'fail');
    const d = await b.submit(b.after(x));
    await b.becomes(d, 'CANCELED');
  });

  test('the reasons of a chain that comes after the end do not grow, and each names the job before it', async () => {
    const b = await setUp();
    let last = await b.submit({ title: 'n0' });
    await b.engine.jobs.cancel(me, last, { reason: 'wrong file' });
    for (let i = 1; i < 12; i++) {
      last = await b.submit({ title: `n${i}`, ...b.after(last) });
      await b.becomes(last, 'CANCELED');
      const reason = (await b.row(last)).cancel_reason as string;
      expect(reason).toMatch(new RegExp(`^it depends on n${i - 1} \\(job_.*which was canceled: `));
      expect(reason.length).toBeLessThan(400);
    }
  });

  test('an unknown upstream job is refused, and nothing is written', async () => {
    const b = await setUp();
    await expect(b.submit(b.after(newUuid()))).rejects.toThrow(NotFound);
    const [row] = await b.database.submit.query<{ n: number }>('select count(*)::int as n from waymark.jobs');
    expect(row?.n).toBe(0);
  });

  test('retrying a failed job revives what was canceled because of it, and what follows from that', async () => {
    const b = await setUp();
    const x = await b.submit();
    const d = await b.submit(b.after(x));
    const e = await b.submit(b.after(d));
    await b.finish(x, 'fail');
    await b.becomes(e, 'CANCELED');
    await b.engine.jobs.retry(me, x);
    await b.becomes(e, 'DEFERRED');
    expect(await b.row(d)).toMatchObject({ state: 'DEFERRED', run: 2, failed_upstream_id: null, cancel_reason: null });
    for (const id of [x, d, e]) await b.finish(id);
    expect(await b.state(e)).toBe('COMPLETED');
  });

  test('what two failed jobs hold down is revived only when both are retried', async () => {
    const b = await setUp();
    const [x, y] = [await b.submit(), await b.submit()];
    const d = await b.submit(b.after(x, y));
    await b.finish(x, 'fail');
    await b.becomes(d, 'CANCELED');
    await b.finish(y, 'fail');
    await b.engine.jobs.retry(me, x);
    expect(await b.row(d)).toMatchObject({ state: 'CANCELED', failed_upstream_id: y });
    await b.engine.jobs.retry(me, y);
    await b.becomes(d, 'DEFERRED');
    await b.finish(x);
    await b.finish(y);
    await b.finish(d);
  });

  test('a dependant that is retried while its upstream job runs again waits for it', async () => {
    const b = await setUp();
    const x = await b.submit();
    const d = await b.submit(b.after([x, 'FAIL']));
    await b.finish(x, 'fail');
    await b.becomes(d, 'FAILED');
    await b.engine.jobs.retry(me, x);
    expect(await b.state(d)).toBe('FAILED');
    expect((await b.engine.jobs.retry(me, d)).state).toBe('DEFERRED');
    await b.finish(x);
    await b.finish(d);
    expect(await b.row(d)).toMatchObject({ state: 'COMPLETED', run: 2 });
  });

  test('what a process that died had left to be told is told by the next sweep', async () => {
    const b = await setUp();
    const x = await b.submit();
    const d = await b.submit(b.after(x));
    await b.claim();
    // As by a process that committed the end of the job and died.
    await b.database.submit.query(
      `with t as (select clock_timestamp() as now), f as (
         insert into waymark.followups (job_id, kind, created_at) select $1::uuid, 'ENDED', now from t)
       update waymark.job_states set state = 'COMPLETED', worker_id = null, finished_at = now() where id = $1::uuid`,
      [x],
    );
    expect(await b.engine.maintenance.followUp()).toEqual({ done: 1 });
    expect(await b.state(d)).toBe('QUEUED');
    expect(await b.engine.maintenance.followUp()).toEqual({ done: 0 });
  });

  test('jobs of a concurrency key run one after the other, in the order of their submits', async () => {
    const b = await setUp();
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push(await b.submit({ concurrencyKey: 'user-1' }));
    const other = await b.submit({ concurrencyKey: 'user-2' });
    expect((await b.claim()).map((j) => j.id).sort()).toEqual([ids[0], other].sort());
    await b.finish(ids[0] as string, 'fail');
    await b.engine.jobs.cancel(me, ids[2] as string);
    await b.finish(ids[1] as string);
    await b.finish(ids[3] as string);
    await eventually(async () => {
      const [row] = await b.database.submit.query<{ n: number }>(
        `select count(*)::int as n from waymark.concurrency_keys where key = 'user-1'`,
      );
      expect(row?.n).toBe(0);
    });
    const bulk = await b.engine.jobs.submitMany(me, [
      { task: 'echo', concurrencyKey: 'user-1' },
      { task: 'echo', concurrencyKey: 'user-1' },
    ]);
    expect((await b.claim()).map((j) => j.id)).toEqual([bulk[0]?.jobId]);
    // A retry goes behind the one that has the key now.
    await b.engine.jobs.retry(me, ids[0] as string);
    expect(await b.claim()).toEqual([]);
    await b.finish(bulk[0]?.jobId as string);
    await eventually(async () => expect((await b.claim()).length + 1).toBe(2));
  });

  test('a revived job takes its turn behind whoever has its concurrency key meanwhile', async () => {
    const b = await setUp();
    const x = await b.submit();
    const d = await b.submit({ ...b.after(x), concurrencyKey: 'k' });
    await b.finish(x, 'fail');
    await b.becomes(d, 'CANCELED');
    const other = await b.submit({ concurrencyKey: 'k' });
    await b.engine.jobs.retry(me, x);
    await b.becomes(d, 'DEFERRED');
    await b.finish(x);
    await b.becomes(d, 'QUEUED');
    expect(await b.state(other)).toBe('RUNNING');
    expect(await b.claim()).toEqual([]);
    await b.finish(other);
    await b.finish(d);
    expect(await b.state(d)).toBe('COMPLETED');
  });

  test('a job that depends on others gets in line for its concurrency key when they are done', async () => {
    const b = await setUp();
    const names = ['before', 'after'] as const;
    // Whichever is named first: what is upstream is never behind what waits for it.
    for (const order of [names, [...names].reverse()]) {
      const nodes = {
        before: { name: 'before', job: { task: 'echo', concurrencyKey: 'k' } },
        after: { name: 'after', job: { task: 'echo', concurrencyKey: 'k' }, dependsOn: [{ node: 'before' }] },
      };
      const { jobs } = await b.engine.graphs.submitGraph(me, { title: 'g', nodes: order.map((name) => nodes[name]) });
      const [before = '', after = ''] = names.map((name) => jobs.get(name));
      await b.finish(before);
      await b.becomes(after, 'QUEUED');
      await b.finish(after);
      await eventually(async () => expect(await b.followUps()).toBe(0));
    }
    const keys = await b.database.read.query('select 1 from waymark.concurrency_keys');
    expect(keys).toEqual([]);
  });

  test('a retried job is not behind what depends on it for their concurrency key', async () => {
    const b = await setUp();
    const [u, v] = [await b.submit({ concurrencyKey: 'k' }), await b.submit()];
    const w = await b.submit({ ...b.after([u, 'CONTINUE'], v), concurrencyKey: 'k' });
    await b.finish(u, 'fail');
    await b.engine.jobs.retry(me, u);
    await b.finish(u);
    await b.finish(v);
    await b.becomes(w, 'QUEUED');
    await b.finish(w);
    expect(await b.state(w)).toBe('COMPLETED');
  });

  test('two that get ready by the end of a job go one after the other for the key that it had', async () => {
    const b = await setUp();
    const x = await b.submit({ concurrencyKey: 'k' });
    const [y, z] = [
      await b.submit({ ...b.after(x), concurrencyKey: 'k' }),
      await b.submit({ ...b.after(x), concurrencyKey: 'k' }),
    ];
    await b.finish(x);
    await b.becomes(z, 'QUEUED');
    expect((await b.claim()).map((job) => job.id)).toEqual([y]);
    await b.finish(y);
    await b.finish(z);
    expect(await b.state(z)).toBe('COMPLETED');
  });
});
