import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newUuid, publicId } from '../../src/core/ids.ts';
import type { SubmitRequest } from '../../src/engine/types.ts';
import { databases } from '../support/database.ts';
import { me, taskNamed } from '../support/factory.ts';
import { type Service, startService } from './service.ts';

const RESULT = `{ __typename
  ... on QueuePayload { queue { name paused pausedAt pausedBy pauseReason maxRunning rateLimit { max per } } }
  ... on UserError { message code path } ... on NotFound { id } ... on InvalidInput { issues { path message } } }`;
const PAUSE = `mutation ($name: String!, $reason: String) { pauseQueue(name: $name, reason: $reason) ${RESULT} }`;
const RESUME = `mutation ($name: String!) { resumeQueue(name: $name) ${RESULT} }`;
const UPDATE = `mutation ($name: String!, $maxRunning: Int, $rateLimit: RateLimitInput) {
  updateQueue(name: $name, maxRunning: $maxRunning, rateLimit: $rateLimit) ${RESULT} }`;
const WAITING = `query ($id: ID!) { job(id: $id) { state waitingOn {
  kind detail until jobs { id } one: jobs(first: 1) { id } jobCount ahead } } }`;

describe.each(databases())('queues by GraphQL on $name', ({ open }) => {
  let service: Service;
  let worker: string;
  /** Of this test alone. */
  let name: string;

  beforeAll(async () => {
    service = await startService(open);
    worker = await service.worker([taskNamed('echo')]);
  });
  beforeEach(async () => {
    name = `queue-${newUuid()}`;
  });

  const ask = async (document: string, variables: Record<string, unknown> = {}, actor = 'user:ada') =>
    Object.values((await service.post(document, { name, ...variables }, { 'x-waymark-actor': actor })).data)[0] as {
      // biome-ignore lint/suspicious/noExplicitAny: answers of any shape
      [field: string]: any;
    };
  const submit = async (n: number, over: Partial<SubmitRequest> = {}) =>
    (
      await service.engine.jobs.submitMany(
        me,
        Array.from({ length: n }, () => ({ task: 'echo', queue: name, ...over })),
      )
    ).map((s) => s.jobId);
  const claim = async (limit: number) => {
    const request = { queues: [name], tasks: ['echo'], limit };
    const limited = await service.engine.execution.claimLimited(worker, request);
    return [...(await service.engine.execution.claim(worker, request)), ...limited.jobs];
  };
  const waitingOn = async (id: string | undefined) =>
    (await service.post(WAITING, { id: publicId('Job', id as string) })).data.job.waitingOn;
  const waitingFor = async (kind: string) =>
    (
      await service.post(
        'query ($filter: JobFilter) { jobs(filter: $filter, orderBy: CREATED_ASC) { nodes { id waitingOn { kind } } } }',
        { filter: { queues: [name], waitingKinds: [kind] } },
      )
    ).data.jobs.nodes as { id: string; waitingOn: { kind: string } }[];

  test('a paused queue says who, why and since when, and keeps its jobs', async () => {
    const [id] = await submit(1);
    const first = await ask(PAUSE, { reason: 'deploy' });
    expect(first.queue).toMatchObject({ name, paused: true, pausedBy: 'user:ada', pauseReason: 'deploy' });
    expect(await claim(5)).toEqual([]);
    expect(await waitingOn(id)).toMatchObject({
      kind: 'QUEUE_PAUSED',
      detail: `Queue ${name} was paused by user:ada: deploy`,
      jobs: [],
      jobCount: 0,
    });
    const resumed = await ask(RESUME);
    const none = { paused: false, pausedAt: null, pausedBy: null, pauseReason: null };
    expect(resumed.queue).toMatchObject(none);
    expect((await ask(RESUME)).queue).toMatchObject(none);
    expect(await claim(5)).toHaveLength(1);
  });

  test('a second pause answers alike; another reason stands with who gave it, and the moment stays', async () => {
    await submit(1);
    const { queue: first } = await ask(PAUSE, { reason: 'deploy' });
    expect((await ask(PAUSE, { reason: 'deploy' }, 'user:bob')).queue).toEqual(first);
    expect((await ask(PAUSE, {}, 'user:bob')).queue).toEqual(first);
    expect((await ask(PAUSE, { reason: 'outage' }, 'user:bob')).queue).toEqual({
      ...first,
      pausedBy: 'user:bob',
      pauseReason: 'outage',
    });
  });

  test('a limit is set, stays where it is left out, and is lifted by null', async () => {
    await submit(1);
    const rateLimit = { max: 5, per: '1m' };
    expect((await ask(UPDATE, { maxRunning: 3, rateLimit })).queue).toMatchObject({ maxRunning: 3, rateLimit });
    expect((await ask(UPDATE, { maxRunning: 4 })).queue).toMatchObject({ maxRunning: 4, rateLimit });
    expect((await ask(UPDATE, { rateLimit: null })).queue).toMatchObject({ maxRunning: 4, rateLimit: null });
    expect((await ask(UPDATE)).queue).toMatchObject({ maxRunning: 4, rateLimit: null });
    expect((await ask(UPDATE, { maxRunning: null })).queue).toMatchObject({ maxRunning: null, rateLimit: null });
  });

  test.each([PAUSE, RESUME, UPDATE])('a queue that nothing has named is NotFound: %s', async (document) => {
    for (const unknown of [name, 'nul\u0000', '']) {
      expect(await ask(document, { name: unknown, maxRunning: 1 })).toEqual({
        __typename: 'NotFound',
        code: 'NOT_FOUND',
        id: unknown,
        message: `queue ${unknown} was not found`,
        path: null,
      });
    }
  });

  test.each<[string, Record<string, unknown>, string[]]>([
    ['nothing may run', { maxRunning: 0 }, ['maxRunning']],
    ['more may run than anybody has', { maxRunning: 100_001 }, ['maxRunning']],
    ['nothing may start', { rateLimit: { max: 0, per: '1s' } }, ['rateLimit.max']],
    ['too many may start', { rateLimit: { max: 1_000_001, per: '1s' } }, ['rateLimit.max']],
    ['in no time', { rateLimit: { max: 1, per: '0ms' } }, ['rateLimit.per']],
    [
      'all of it at once',
      { maxRunning: -1, rateLimit: { max: -1, per: '0s' } },
      ['maxRunning', 'rateLimit.max', 'rateLimit.per'],
    ],
  ])('is refused and changes nothing: %s', async (_, limits, paths) => {
    await submit(1);
    await ask(UPDATE, { maxRunning: 7 });
    const refused = await ask(UPDATE, limits);
    expect(refused).toMatchObject({ __typename: 'InvalidInput', code: 'INVALID_INPUT' });
    expect(refused.issues.map((i: { path: string }) => i.path)).toEqual(paths);
    expect((await ask(UPDATE)).queue).toMatchObject({ maxRunning: 7, rateLimit: null });
  });

  test.each(['x'.repeat(501), 'nul\u0000'])('a reason that cannot be kept is refused', async (reason) => {
    await submit(1);
    expect(await ask(PAUSE, { reason })).toMatchObject({ __typename: 'InvalidInput', issues: [{ path: 'reason' }] });
    expect((await ask(RESUME)).queue.paused).toBe(false);
  });

  test('a job behind maxRunning waits for those that run, and the filter says the same', async () => {
    const ids = await submit(5);
    await ask(UPDATE, { maxRunning: 2 });
    expect(await waitingOn(ids[4])).toMatchObject({ kind: 'CAPACITY', jobs: [], jobCount: 0 });
    const running = (await claim(5)).map((job) => publicId('Job', job.id)).sort();
    expect(running).toHaveLength(2);
    const waiting = await waitingOn(ids[4]);
    expect(waiting).toMatchObject({
      kind: 'MAX_RUNNING',
      detail: `Queue ${name} runs 2 jobs, as many as it may.`,
      until: null,
      jobCount: 2,
      ahead: 2,
    });
    expect(waiting.jobs.map((j: { id: string }) => j.id).sort()).toEqual(running);
    expect(waiting.one).toHaveLength(1);
    const found = await waitingFor('MAX_RUNNING');
    expect(found.map((j) => j.id)).toEqual(ids.slice(2).map((id) => publicId('Job', id)));
    expect(found.every((j) => j.waitingOn.kind === 'MAX_RUNNING')).toBe(true);
    await ask(UPDATE, { maxRunning: 3 });
    expect(await waitingFor('MAX_RUNNING')).toEqual([]);
    expect(await waitingFor('CAPACITY')).toHaveLength(3);
    expect(await claim(5)).toHaveLength(1);
  });

  test('a job behind a rate limit says when the next start is free, and the filter says the same', async () => {
    const ids = await submit(4);
    await ask(UPDATE, { rateLimit: { max: 2, per: '1h' } });
    const [started] = await claim(1);
    expect((await waitingOn(ids[3])).kind).toBe('CAPACITY');
    await claim(1);
    const waiting = await waitingOn(ids[3]);
    expect(waiting).toMatchObject({ kind: 'RATE_LIMIT', jobs: [], jobCount: 0, ahead: 1 });
    const [row] = await service.database.read.query<{ ms: number }>(
      `select (extract(epoch from s.started_at) * 1000)::float8 as ms from waymark.job_states s where s.id = $1::uuid`,
      [started?.id as string],
    );
    expect(Math.abs(Date.parse(waiting.until) - 3_600_000 - (row?.ms ?? 0))).toBeLessThanOrEqual(1);
    expect(waiting.detail).toBe(
      `Queue ${name} started 2 jobs within 1h, as many as it may; the next start is free at ${waiting.until}.`,
    );
    expect((await waitingFor('RATE_LIMIT')).map((j) => j.id)).toEqual(ids.slice(2).map((id) => publicId('Job', id)));
    expect(await claim(5)).toEqual([]);
    // What runs weighs more: a start that is free would not help.
    await ask(UPDATE, { maxRunning: 2 });
    expect((await waitingOn(ids[3])).kind).toBe('MAX_RUNNING');
    expect(await waitingFor('RATE_LIMIT')).toEqual([]);
    // And nothing at all would help where nobody serves, or where it is paused.
    await ask(PAUSE);
    expect((await waitingOn(ids[3])).kind).toBe('QUEUE_PAUSED');
    await ask(RESUME);
    const [other] = await submit(1, { task: await strange() });
    expect((await waitingOn(other)).kind).toBe('NO_WORKER');
    expect(await waitingFor('NO_WORKER')).toHaveLength(1);
  });

  async function strange(): Promise<string> {
    const task = `strange-${newUuid()}`;
    await service.engine.execution.registerTasks([taskNamed(task)]);
    return task;
  }
});
