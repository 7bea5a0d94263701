import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newUuid, parseId, publicId } from '../../src/core/ids.ts';
import type { JobState } from '../../src/core/state.ts';
import type { SubmitRequest } from '../../src/engine/types.ts';
import { insertJobs } from '../schema/rows.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me, taskNamed } from '../support/factory.ts';
import { type HandWorker, handWorker } from './hand-worker.ts';
import { type Service, startService } from './service.ts';

const RESULT = `{ __typename ... on BulkPayload { matched changed remaining }
  ... on InvalidInput { code path issues { path message } } ... on CountChanged { code path expected actual message } }`;
const CANCEL = `mutation ($filter: JobFilter!, $reason: String, $expectedCount: Int, $dryRun: Boolean) {
  cancelJobs(filter: $filter, reason: $reason, expectedCount: $expectedCount, dryRun: $dryRun) ${RESULT} }`;
const RETRY = `mutation ($filter: JobFilter!, $reason: String, $expectedCount: Int, $dryRun: Boolean, $fromStart: Boolean) {
  retryJobs(filter: $filter, reason: $reason, expectedCount: $expectedCount, dryRun: $dryRun, fromStart: $fromStart) ${RESULT} }`;
const GRAPH = `mutation ($input: SubmitGraphInput!) { submitGraph(input: $input) {
  ... on SubmitGraphPayload { graph { id nodes { name job { id } } } } } }`;

describe.each(databases())('bulk operations by GraphQL on $name', ({ open }) => {
  let service: Service;
  let worker: HandWorker;
  /** Of this test alone. */
  let tag: string;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
    await service.worker([taskNamed('idle')]);
  });
  beforeEach(() => {
    tag = newUuid();
  });

  const ask = async (document: string, variables: Record<string, unknown>, actor = 'user:ada') => {
    const { data, errors } = await service.post(document, variables, { 'x-waymark-actor': actor });
    if (errors) throw new Error(JSON.stringify(errors));
    // biome-ignore lint/suspicious/noExplicitAny: answers of any shape
    return Object.values(data)[0] as any;
  };
  const ours = (more: Record<string, unknown> = {}) => ({ tags: [tag], ...more });
  const submit = async (n: number, over: Partial<SubmitRequest> = {}) => {
    const requests = Array.from({ length: n }, () => ({ task: 'echo', tags: [tag], ...over }));
    return (await service.engine.jobs.submitMany(me, requests)).map((s) => publicId('Job', s.jobId));
  };
  const states = async (ids: readonly string[]): Promise<JobState[]> => {
    const { data } = await service.post('query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Job { state } } }', { ids });
    return data.nodes.map((n: { state: JobState } | null) => n?.state);
  };
  const lastEvent = async (id: string | undefined) =>
    (
      await ask(
        'query ($id: ID!) { job(id: $id) { events(last: 1) { nodes { __typename actor ... on JobCanceled { reason } ... on JobQueued { why: reason } } } } }',
        { id },
      )
    ).events.nodes[0];

  test('cancels whatever is unfinished and leaves the rest: waiting at once, running by request', async () => {
    const waiting = await submit(3);
    const later = await submit(1, { delayMs: 3_600_000 });
    const [done, running] = (await submit(2, { priority: 100 })) as [string, string];
    await worker.complete(done);
    await worker.start(running);
    const filter = ours();
    expect(await ask(CANCEL, { filter, dryRun: true })).toEqual({
      __typename: 'BulkPayload',
      matched: 5,
      changed: 0,
      remaining: 5,
    });
    expect(await states(waiting)).not.toContain('CANCELED');
    expect(await ask(CANCEL, { filter, reason: 'wrong file', expectedCount: 5 })).toMatchObject({
      matched: 5,
      changed: 5,
      remaining: 0,
    });
    expect(await states([...later, running, done])).toEqual(['CANCELED', 'RUNNING', 'COMPLETED']);
    expect(await lastEvent(later[0])).toEqual({ __typename: 'JobCanceled', actor: 'user:ada', reason: 'wrong file' });
    // Asked to stop already: it matches, and nothing is left to be done.
    expect(await ask(CANCEL, { filter })).toMatchObject({ matched: 1, changed: 0, remaining: 0 });
    await worker.stop(running);
    expect(await ask(CANCEL, { filter })).toMatchObject({ matched: 0, changed: 0, remaining: 0 });
  });

  test('retries what failed or was canceled, and others only where their state is named', async () => {
    const [failed, canceled, completed, other] = (await submit(4)) as [string, string, string, string];
    await ask(CANCEL, { filter: { ids: [canceled, other] } });
    await worker.fail(failed);
    await worker.complete(completed);
    const [due] = await submit(1, { delayMs: 3_600_000 });
    expect(
      await ask(RETRY, { filter: ours({ ids: [failed, canceled, completed, due] }), reason: 'disk is free' }),
    ).toMatchObject({
      matched: 2,
      changed: 2,
      remaining: 0,
    });
    expect(await states([failed, canceled, completed, due as string])).toEqual([
      'QUEUED',
      'QUEUED',
      'COMPLETED',
      'SCHEDULED',
    ]);
    expect(await lastEvent(failed)).toMatchObject({ __typename: 'JobQueued', actor: 'user:ada', why: 'disk is free' });
    expect(await ask(RETRY, { filter: ours({ states: ['SCHEDULED', 'COMPLETED', 'QUEUED'] }) })).toMatchObject({
      matched: 2,
      changed: 2,
    });
    expect(await states([completed, due as string])).toEqual(['QUEUED', 'QUEUED']);
    expect(await ask(RETRY, { filter: ours({ states: ['QUEUED'] }) })).toMatchObject({ matched: 0, changed: 0 });
    await ask(CANCEL, { filter: ours() });
  });

  test('a whole graph is canceled with the children of its nodes, and retried in the order of its edges', async () => {
    const nodes = [
      { name: 'd', job: { task: 'echo', tags: [tag] }, dependsOn: [{ node: 'c', policy: 'CONTINUE' }, { node: 'b' }] },
      { name: 'c', job: { task: 'echo', tags: [tag] }, dependsOn: [{ node: 'a' }] },
      { name: 'b', job: { task: 'echo', tags: [tag] }, dependsOn: [{ node: 'a' }] },
      { name: 'a', job: { task: 'echo', tags: [tag] } },
    ];
    const { graph } = await ask(GRAPH, { input: { nodes } });
    const jobs = Object.fromEntries(graph.nodes.map((n: { name: string; job: { id: string } }) => [n.name, n.job.id]));
    const links = { graphId: parseId('Graph', graph.id), parentId: parseId('Job', jobs.a) };
    const child = await service.engine.jobs.submit(me, { task: 'echo', delayMs: 3_600_000 }, { links });
    const all = [...Object.values<string>(jobs), publicId('Job', child.jobId)];
    expect(await ask(CANCEL, { filter: { graphId: graph.id } })).toMatchObject({
      matched: 5,
      changed: 5,
      remaining: 0,
    });
    expect(await states(all)).toEqual(Array(5).fill('CANCELED'));
    // Nodes stand before what they depend on: in the order of their ids they would run at once.
    expect(await ask(RETRY, { filter: { graphId: graph.id, tags: [tag] } })).toMatchObject({
      matched: 4,
      changed: 4,
      remaining: 0,
    });
    expect(await states([jobs.a, jobs.b, jobs.c, jobs.d])).toEqual(['QUEUED', 'DEFERRED', 'DEFERRED', 'DEFERRED']);
    for (const name of ['a', 'b', 'c', 'd']) await worker.complete(jobs[name]);
    await eventually(async () => expect(await states([jobs.d])).toEqual(['COMPLETED']));
  });

  test('a canceled job takes along what depends on it, at once', async () => {
    const [x] = (await submit(1)) as [string];
    const [d] = (await submit(1, { dependsOn: [{ jobId: parseId('Job', x) }], tags: [] })) as [string];
    await ask(CANCEL, { filter: ours() });
    expect(await states([x, d])).toEqual(['CANCELED', 'CANCELED']);
  });

  test.each([
    ['without a field', {}],
    ['whose fields are all null', { states: null, tags: null, text: null, graphId: null }],
    ['whose text is empty', { text: '' }],
  ])('a filter %s is refused', async (_, filter) => {
    for (const document of [CANCEL, RETRY]) {
      const refused = await ask(document, { filter });
      expect(refused).toMatchObject({ __typename: 'InvalidInput', code: 'INVALID_INPUT', path: null });
      expect(refused.issues[0].path).toBe('filter');
    }
  });

  test('a filter that matches nothing does nothing', async () => {
    const [id] = await submit(1);
    for (const filter of [{ ids: [] }, { states: [] }, ours({ states: ['COMPLETED'] })]) {
      expect(await ask(CANCEL, { filter })).toEqual({
        __typename: 'BulkPayload',
        matched: 0,
        changed: 0,
        remaining: 0,
      });
    }
    expect(await states([id as string])).toEqual(['QUEUED']);
    await ask(CANCEL, { filter: ours() });
  });

  test('another count than was seen stops it before anything is done', async () => {
    const ids = await submit(3);
    for (const dryRun of [false, true]) {
      expect(await ask(CANCEL, { filter: ours(), expectedCount: 2, dryRun })).toEqual({
        __typename: 'CountChanged',
        code: 'COUNT_CHANGED',
        path: null,
        expected: 2,
        actual: 3,
        message: '3 jobs match now, and not 2; look again',
      });
    }
    expect(await states(ids)).toEqual(Array(3).fill('QUEUED'));
    expect(await ask(RETRY, { filter: ours(), expectedCount: 1 })).toMatchObject({ __typename: 'CountChanged' });
    await ask(CANCEL, { filter: ours() });
  });

  test('a bad reason and a bad id are refused', async () => {
    expect(await ask(CANCEL, { filter: ours(), reason: 'x'.repeat(501) })).toMatchObject({
      __typename: 'InvalidInput',
      issues: [{ path: 'reason' }],
    });
    const { errors } = await service.post(CANCEL, { filter: { ids: ['job_x'] } });
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  test('jobs of others stay, and so does what is past its retention', async () => {
    const others = await insertJobs(service.database.work, [
      { tenant: 'other', tags: [tag], task: 'idle' },
      { state: 'FAILED', tags: [tag], task: 'idle', pruned: true },
    ]);
    expect(await ask(CANCEL, { filter: ours() })).toMatchObject({ matched: 0 });
    const ids = others.map((id) => publicId('Job', id));
    expect(await ask(RETRY, { filter: { ids } })).toMatchObject({ matched: 0, changed: 0, remaining: 0 });
  });

  test('a job that cannot be changed does not stop the others', async () => {
    const { work } = service.database;
    const ids = await submit(5);
    await work.query(`create function public.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'this one is cursed'; end $$`);
    await work.query(`create trigger refuse before update on waymark.job_states for each row
      when (new.id = '${parseId('Job', ids[2] as string)}') execute function public.refuse()`);
    try {
      expect(await ask(CANCEL, { filter: ours() })).toMatchObject({ matched: 5, changed: 4, remaining: 0 });
    } finally {
      await work.query('drop trigger refuse on waymark.job_states');
      await work.query('drop function public.refuse');
    }
    expect(await states(ids)).toEqual(['CANCELED', 'CANCELED', 'QUEUED', 'CANCELED', 'CANCELED']);
    await ask(CANCEL, { filter: ours() });
  });

  test('at most 10,000 are done in a call, and repeating it does all', async () => {
    const given = Array.from({ length: 12_000 }, () => ({ state: 'SCHEDULED' as const, tags: [tag], task: 'idle' }));
    await insertJobs(service.database.work, given);
    expect(await ask(CANCEL, { filter: ours() })).toMatchObject({ matched: 12_000, changed: 10_000, remaining: 2_000 });
    expect(await ask(CANCEL, { filter: ours() })).toMatchObject({ matched: 2_000, changed: 2_000, remaining: 0 });
    const { data } = await service.post('query ($filter: JobFilter) { jobCounts(filter: $filter) { state count } }', {
      filter: ours(),
    });
    expect(data.jobCounts).toContainEqual({ state: 'CANCELED', count: 10_000 });
  }, 60_000);

  test('what changes under its hands is left alone: a filter by state cancels nothing that runs by now', async () => {
    const ids = await submit(200);
    const claims = Promise.all(ids.slice(0, 40).map((id) => worker.start(id)));
    const result = await ask(CANCEL, { filter: ours({ states: ['QUEUED'] }) });
    await claims.catch(() => {});
    const { data } = await service.post(
      'query ($filter: JobFilter) { jobs(filter: $filter, first: 200) { nodes { state cancellation { reason } } } }',
      { filter: ours() },
    );
    const running = data.jobs.nodes.filter((n: { state: string }) => n.state === 'RUNNING');
    expect(running.every((n: { cancellation: unknown }) => n.cancellation === null)).toBe(true);
    expect(result.changed + running.length).toBe(200);
    await ask(CANCEL, { filter: ours() });
  }, 60_000);
});
