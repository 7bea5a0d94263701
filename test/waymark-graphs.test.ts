import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { newUuid, parseId, publicId } from '../src/core/ids.ts';
import {
  createWaymark,
  defineTask,
  GraphIdempotencyConflict,
  InvalidId,
  InvalidInput,
  type JobSnapshot,
  NotFound,
  type RemovedJob,
  type Waymark,
  type WaymarkOptions,
} from '../src/index.ts';
import { createPostgresDatabase, databases } from './support/database.ts';
import { eventually } from './support/eventually.ts';

const double = defineTask({
  name: 'double',
  input: z.object({ n: z.number().refine((n) => n < 1_000, 'is too large') }),
  run: (_ctx, { n }) => ({ n: n * 2 }),
});
const report = defineTask({ name: 'report', input: z.object({ title: z.string() }), run: (_ctx, { title }) => title });
const tick = defineTask({ name: 'tick', run: () => 1 });

const stores = databases().map(({ name }) => ({ name }));
describe.each(stores)('a graph from a back end on $name', ({ name }) => {
  let waymark: Waymark;

  beforeAll(async () => {
    const databaseUrl = name === 'Postgres' ? await createPostgresDatabase() : null;
    const options: WaymarkOptions = { dataDir: 'memory://', databaseUrl, redisUrl: null, poll: '200ms' };
    waymark = await createWaymark(options);
    await waymark.worker({ tasks: [double, report, tick], queues: ['default'] }).start();
  });
  afterAll(() => waymark.close());

  const ended = (id: string, state: string) =>
    eventually(async () => expect((await waymark.job(id))?.state).toBe(state));

  test('runs in the order of its edges; jobs have the names of their nodes', async () => {
    const { graph, jobs, deduplicated, wake } = await waymark.submitGraph({
      title: 'nightly',
      nodes: {
        load: { task: double, input: { n: 1 }, tags: ['nightly'] },
        check: { task: tick, dependsOn: ['load'] },
        report: { task: report, input: { title: 'r' }, dependsOn: ['load', { node: 'check', policy: 'CONTINUE' }] },
      },
    });
    wake();
    expect(graph).toEqual({ id: expect.stringMatching(/^gra_/), title: 'nightly' });
    expect(deduplicated).toBe(false);
    expect(jobs.load).toMatchObject({ task: 'double', tags: ['nightly'] });
    expect(jobs.report).toMatchObject({ task: 'report' });
    await ended(jobs.report.id, 'COMPLETED');
  });

  test('may depend on jobs outside, in a node and in a single submit', async () => {
    const { job } = await waymark.submit(tick, undefined, { queue: 'nobody' });
    const { jobs } = await waymark.submitGraph({
      nodes: { a: { task: tick, dependsOn: [{ jobId: job.id, policy: 'FAIL' }] }, b: { task: tick, dependsOn: ['a'] } },
    });
    const single = await waymark.submit(tick, undefined, {
      dependsOn: [job.id, { jobId: jobs.a.id, policy: 'CONTINUE' }],
    });
    expect([jobs.a.state, jobs.b.state, single.job.state]).toEqual(['DEFERRED', 'DEFERRED', 'DEFERRED']);
    await waymark.cancel(job.id, { reason: 'no', cascade: true });
    await ended(jobs.a.id, 'FAILED');
    await ended(jobs.b.id, 'CANCELED');
    expect((await waymark.job(jobs.a.id))?.error).toMatchObject({ code: 'DEPENDENCY_FAILED' });
    await ended(single.job.id, 'CANCELED');
  });

  test('is there if and only if the transaction of the caller commits', async () => {
    const graph = { nodes: { a: { task: tick }, b: { task: tick, dependsOn: ['a' as const] } } };
    const { jobs, wake } = await waymark.db.transaction(async (tx) => {
      await tx.execute(sql`select 1`);
      return waymark.submitGraph(graph, { tx });
    });
    wake();
    await ended(jobs.b.id, 'COMPLETED');
    let lost = '';
    const rolledBack = waymark.db.transaction(async (tx) => {
      lost = (await waymark.submitGraph(graph, { tx })).jobs.a.id;
      throw new Error('no');
    });
    await expect(rolledBack).rejects.toThrow('no');
    expect(await waymark.job(lost)).toBeNull();
  });

  test('with a key is the same again, also when its jobs are past their retention', async () => {
    const nodes = { a: { task: tick }, b: { task: double, input: { n: 2 } } };
    const first = await waymark.submitGraph({ idempotencyKey: 'k', nodes });
    await ended(first.jobs.a.id, 'COMPLETED');
    await ended(first.jobs.b.id, 'COMPLETED');
    const again = await waymark.submitGraph({ idempotencyKey: 'k', nodes });
    expect(again).toMatchObject({ deduplicated: true, graph: first.graph, jobs: { a: { state: 'COMPLETED' } } });
    await expect(waymark.submitGraph({ idempotencyKey: 'k', nodes: { a: { task: tick } } })).rejects.toThrow(
      GraphIdempotencyConflict,
    );
    const id = parseId('Job', first.jobs.a.id);
    for (const table of [sql`waymark.jobs`, sql`waymark.job_states`]) {
      await waymark.db.execute(sql`delete from ${table} where id = ${id}`);
    }
    const bare = await waymark.submitGraph({ idempotencyKey: 'k', nodes });
    expect(bare.jobs.a).toEqual({ id: first.jobs.a.id, state: null });
    expect(bare.jobs.b.state).not.toBeNull();
  });

  test('whatever is wrong is said with the name of its node, and nothing is written', async () => {
    const count = async () => (await waymark.db.execute(sql`select count(*)::int as n from waymark.jobs`)) as unknown;
    const before = await count();
    const refused = async (nodes: Parameters<Waymark['submitGraph']>[0]['nodes']) =>
      waymark.submitGraph({ nodes }).catch((error: unknown) => error);
    const bad = await refused({ a: { task: tick }, b: { task: double, input: { n: 5_000 } } });
    expect(bad).toBeInstanceOf(InvalidInput);
    expect(bad).toMatchObject({ path: 'nodes.b', issues: [{ path: 'nodes.b.input.n' }] });
    expect(await refused({ a: { task: tick, dependsOn: ['b'] }, b: { task: tick, dependsOn: ['a'] } })).toMatchObject({
      path: 'nodes.a',
      issues: [{ message: 'goes round in a circle: a → b → a' }],
    });
    expect(await refused({ a: { task: tick, dependsOn: [{ jobId: 'nonsense' }] } })).toBeInstanceOf(InvalidId);
    const missing = publicId('Job', newUuid());
    const notFound = await refused({ a: { task: tick, dependsOn: [{ jobId: missing }] } });
    expect(notFound).toBeInstanceOf(NotFound);
    expect(notFound).toMatchObject({ path: 'nodes.a', id: missing });
    await expect(waymark.submit(tick, undefined, { dependsOn: ['job_x'] })).rejects.toThrow(InvalidId);
    await expect(waymark.submit(tick, undefined, { dependsOn: [missing] })).rejects.toThrow(NotFound);
    expect(await count()).toEqual(before);
  });
});

test('what does not fit together does not compile', () => {
  // Never called: only its types are of interest.
  const submit = (waymark: Waymark) =>
    waymark.submitGraph({
      nodes: {
        a: { task: double, input: { n: 1 } },
        b: { task: report, input: { title: 't' }, dependsOn: ['a', { node: 'a', policy: 'FAIL' }, { jobId: 'job_x' }] },
        c: { task: tick },
      },
    });
  type Jobs = Awaited<ReturnType<typeof submit>>['jobs'];
  expectTypeOf<keyof Jobs>().toEqualTypeOf<'a' | 'b' | 'c'>();
  expectTypeOf<Jobs['a']>().toEqualTypeOf<JobSnapshot | RemovedJob>();
  const wrong = (waymark: Waymark) => [
    // @ts-expect-error a wrong input
    waymark.submitGraph({ nodes: { a: { task: double, input: { n: 'one' } } } }),
    // @ts-expect-error no input, which this task needs
    waymark.submitGraph({ nodes: { a: { task: double } } }),
    // @ts-expect-error the input of another node's task
    waymark.submitGraph({ nodes: { a: { task: tick }, b: { task: report, input: { n: 1 } } } }),
    // @ts-expect-error a node that is not in the graph
    waymark.submitGraph({ nodes: { a: { task: tick }, b: { task: tick, dependsOn: ['c'] } } }),
    // @ts-expect-error the same, with a policy
    waymark.submitGraph({ nodes: { a: { task: tick, dependsOn: [{ node: 'b', policy: 'FAIL' }] } } }),
    // @ts-expect-error a policy that there is not
    waymark.submitGraph({ nodes: { a: { task: tick, dependsOn: [{ jobId: 'job_x', policy: 'WAIT' }] } } }),
  ];
  expectTypeOf(wrong).toBeFunction();
});
