import { beforeAll, describe, expect, test } from 'vitest';
import { newUuid, parseId, publicId } from '../../src/core/ids.ts';
import type { SubmitRequest } from '../../src/engine/types.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { type HandWorker, handWorker } from './hand-worker.ts';
import { type Service, startService } from './service.ts';

const SUBMIT = `mutation ($input: SubmitJobInput!) { submitJob(input: $input) { __typename
  ... on SubmitJobPayload { job { id state } } ... on NotFound { id path } ... on InvalidInput { issues { path message } } } }`;
const JOB = `query ($id: ID!) { job(id: $id) { state dependencyCount dependentCount parent { id }
  dependencies { policy satisfied job { id } } one: dependencies(first: 1) { job { id } }
  dependents { policy satisfied job { id } }
  waitingOn { kind detail until jobCount jobs { id } one: jobs(first: 1) { id } none: jobs(first: 0) { id } } } }`;

describe.each(databases())('jobs that wait for others by GraphQL on $name', ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  const ask = async (document: string, variables: Record<string, unknown> = {}) => {
    const { data, errors } = await service.post(document, variables);
    if (errors) throw new Error(JSON.stringify(errors));
    return data;
  };
  const submit = async (input: Record<string, unknown> = {}) =>
    (await ask(SUBMIT, { input: { task: 'echo', ...input } })).submitJob;
  const make = async (input: Record<string, unknown> = {}) => (await submit(input)).job.id as string;
  const behind = (...ids: string[]) => ({ dependsOn: ids.map((jobId) => ({ jobId })) });
  const job = async (id: string) => (await ask(JOB, { id })).job;
  const becomes = (id: string, state: string) => eventually(async () => expect((await job(id)).state).toBe(state));
  const waitsFor = async (kind: string, id: string) => {
    const filter = { waitingKinds: [kind], ids: [id] };
    return (await ask('query ($filter: JobFilter) { jobs(filter: $filter) { totalCount } }', { filter })).jobs
      .totalCount;
  };

  test('both ends of a dependency know each other, and the one that waits says for how many', async () => {
    const [x, y, z] = [await make(), await make(), await make()];
    const d = await make({ dependsOn: [{ jobId: x }, { jobId: y, policy: 'FAIL' }, { jobId: z, policy: 'CONTINUE' }] });
    const e = await make(behind(x));
    const waiting = await job(d);
    expect(waiting).toMatchObject({ state: 'DEFERRED', dependencyCount: 3, dependentCount: 0, parent: null });
    expect(waiting.dependencies).toEqual([
      { policy: 'CANCEL', satisfied: false, job: { id: x } },
      { policy: 'FAIL', satisfied: false, job: { id: y } },
      { policy: 'CONTINUE', satisfied: false, job: { id: z } },
    ]);
    expect(waiting.one).toEqual([{ job: { id: x } }]);
    expect((await job(x)).dependents.map((n: { job: { id: string } }) => n.job.id)).toEqual([d, e]);
    expect(await job(x)).toMatchObject({ dependentCount: 2, dependencyCount: 0, dependencies: [] });

    await worker.complete(x);
    await becomes(e, 'QUEUED');
    expect(await job(d)).toMatchObject({
      waitingOn: {
        kind: 'DEPENDENCIES',
        detail: 'Waits for 2 of 3 jobs that it depends on.',
        until: null,
        jobCount: 2,
        jobs: [{ id: y }, { id: z }],
        one: [{ id: y }],
        none: [],
      },
    });
    expect((await job(d)).dependencies[0].satisfied).toBe(true);
    expect(await waitsFor('DEPENDENCIES', d)).toBe(1);
    expect(await waitsFor('CHILDREN', d)).toBe(0);
    await worker.complete(y);
    await worker.fail(z);
    await becomes(d, 'QUEUED');
  });

  test('children are a list of their own: no dependencies, and counted in what their parent waits for', async () => {
    const parent = await make();
    const child = async () =>
      (
        await service.engine.jobs.submit(me, { task: 'echo' } satisfies SubmitRequest, {
          links: { parentId: parseId('Job', parent) },
        })
      ).jobId;
    const ids = [await child(), await child(), await child()];
    // As a handler does that waits for its children.
    await service.database.work.query(
      `with e as (
         insert into waymark.job_dependencies (job_id, upstream_id, kind, policy, position)
         select $1::uuid, x.id, 'CHILD', 'CONTINUE', x.n from unnest($2::text::uuid[]) with ordinality as x(id, n))
       update waymark.job_states set state = 'DEFERRED', waiting_kind = 'CHILDREN' where id = $1::uuid`,
      [parseId('Job', parent), `{${ids.join(',')}}`],
    );
    await worker.complete(publicId('Job', ids[0] as string));
    const children = `query ($id: ID!, $after: String) { job(id: $id) { children(first: 2, after: $after) {
      totalCount nodes { id parent { id } } pageInfo { hasNextPage endCursor } } } }`;
    const first = (await ask(children, { id: parent })).job.children;
    expect(first).toMatchObject({ totalCount: 3, pageInfo: { hasNextPage: true } });
    const second = (await ask(children, { id: parent, after: first.pageInfo.endCursor })).job.children;
    expect([...first.nodes, ...second.nodes]).toEqual(
      ids.map((id) => ({ id: publicId('Job', id), parent: { id: parent } })),
    );
    expect(second.pageInfo.hasNextPage).toBe(false);
    expect(await job(parent)).toMatchObject({
      dependencies: [],
      dependencyCount: 0,
      waitingOn: {
        kind: 'CHILDREN',
        detail: 'Waits for 2 of 3 jobs that it started.',
        jobCount: 2,
        jobs: ids.slice(1).map((id) => ({ id: publicId('Job', id) })),
      },
    });
    expect(await waitsFor('CHILDREN', parent)).toBe(1);
  });

  test('a sleeping job says until when', async () => {
    const id = await make({ delay: '1h' });
    expect((await job(id)).waitingOn).toMatchObject({ kind: 'DUE_TIME' });
    await service.database.work.query(`update waymark.job_states set waiting_kind = 'SLEEP' where id = $1::uuid`, [
      parseId('Job', id),
    ]);
    const { waitingOn } = await job(id);
    expect(waitingOn).toMatchObject({ kind: 'SLEEP', jobCount: 0, jobs: [] });
    expect(waitingOn.detail).toBe(`Sleeps until ${waitingOn.until}.`);
    expect(await waitsFor('SLEEP', id)).toBe(1);
    expect(await waitsFor('DUE_TIME', id)).toBe(0);
  });

  test('behind a concurrency key it is said whose turn it is', async () => {
    const concurrencyKey = newUuid();
    const [first, second, third] = [
      await make({ concurrencyKey }),
      await make({ concurrencyKey }),
      await make({ concurrencyKey }),
    ];
    for (const id of [second, third]) {
      expect((await job(id)).waitingOn).toMatchObject({
        kind: 'CONCURRENCY_KEY',
        jobCount: 1,
        jobs: [{ id: first }],
        none: [],
      });
    }
    await worker.complete(first);
    await eventually(async () => expect((await job(third)).waitingOn.jobs).toEqual([{ id: second }]));
  });

  test('what cannot be waited for is refused: unknown, twice, not an id, too many', async () => {
    const missing = publicId('Job', newUuid());
    expect(await submit(behind(missing))).toEqual({ __typename: 'NotFound', id: missing, path: null });
    const x = await make();
    expect(await submit(behind(x, x))).toMatchObject({
      __typename: 'InvalidInput',
      issues: [{ path: 'dependsOn[1]' }],
    });
    const many = await submit(behind(...Array.from({ length: 1_001 }, () => x)));
    expect(many.issues).toEqual([{ path: 'dependsOn', message: 'must not be more than 1000' }]);
    const { errors } = await service.post(SUBMIT, { input: { task: 'echo', ...behind('nonsense') } });
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining('input.dependsOn[0].jobId'),
      extensions: { code: 'BAD_USER_INPUT' },
    });
    const bulk = `mutation ($inputs: [SubmitJobInput!]!) { submitJobs(inputs: $inputs) { __typename ... on NotFound { id path } } }`;
    const inputs = [{ task: 'echo' }, { task: 'echo', ...behind(missing) }];
    expect((await ask(bulk, { inputs })).submitJobs).toEqual({
      __typename: 'NotFound',
      id: missing,
      path: 'inputs[1]',
    });
    const { errors: sizes } = await service.post(
      'query ($id: ID!) { job(id: $id) { dependents(first: 201) { satisfied } } }',
      {
        id: x,
      },
    );
    expect(sizes?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT', argument: 'first' });
  });

  test('a dependant of a job that failed before ends at once and says why; cascade is a choice of the cancel', async () => {
    const x = await make({ title: 'extract' });
    await worker.fail(x);
    const d = await make(behind(x));
    await becomes(d, 'CANCELED');
    const events = 'query ($id: ID!) { job(id: $id) { events(last: 1) { nodes { ... on JobCanceled { reason } } } } }';
    expect((await ask(events, { id: d })).job.events.nodes).toEqual([
      { reason: `it depends on extract (${x}), which failed: disk full` },
    ]);
    const ladder = `query ($id: ID!) { job(id: $id) { finishedAt error { code }
      cancellation { requestedAt requestedBy reason deliveredAt stoppedAt forced } } }`;
    const { cancellation, finishedAt, error } = (await ask(ladder, { id: d })).job;
    expect(error).toBeNull();
    expect(cancellation).toEqual({
      requestedAt: finishedAt,
      requestedBy: null,
      reason: `it depends on extract (${x}), which failed: disk full`,
      deliveredAt: null,
      stoppedAt: finishedAt,
      forced: false,
    });
    expect((await ask(ladder, { id: x })).job.cancellation).toBeNull();

    const parent = await make();
    const links = { parentId: parseId('Job', parent) };
    const [left, taken] = [
      await service.engine.jobs.submit(me, { task: 'echo', delayMs: 3_600_000 }, { links }),
      await service.engine.jobs.submit(me, { task: 'echo', delayMs: 3_600_000 }, { links }),
    ];
    // As a handler does that submits children.
    await service.database.work.query('update waymark.job_states set followed = true where id = $1::uuid', [
      links.parentId,
    ]);
    const cancel =
      'mutation ($input: CancelJobInput!) { cancelJob(input: $input) { ... on CancelJobPayload { job { state } } } }';
    await ask(cancel, { input: { id: parent, cascade: false } });
    expect((await job(publicId('Job', left.jobId))).state).toBe('SCHEDULED');
    await ask('mutation ($input: RetryJobInput!) { retryJob(input: $input) { __typename } }', {
      input: { id: parent },
    });
    await ask(cancel, { input: { id: parent } });
    await becomes(publicId('Job', taken.jobId), 'CANCELED');
  });
});
