import { beforeAll, describe, expect, test } from 'vitest';
import { newUuid, publicId } from '../../src/core/ids.ts';
import { databases } from '../support/database.ts';
import { taskNamed } from '../support/factory.ts';
import { type Service, startService } from './service.ts';

const INPUT_SCHEMA = {
  type: 'object',
  properties: {
    rows: {
      type: 'array',
      items: { type: 'object', properties: { email: { type: 'string', format: 'email' } }, required: ['email'] },
    },
  },
  required: ['rows'],
};

const SUBMIT = `mutation ($input: SubmitJobInput!) {
  submitJob(input: $input) {
    __typename
    ... on SubmitJobPayload { deduplicated job { id state input title queue tags priority maxAttempts timeout runAt } }
    ... on UserError { message code path }
    ... on InvalidInput { issues { path message } }
    ... on UnknownTask { task known }
    ... on IdempotencyConflict { givenDigest storedDigest job { id } }
    ... on PayloadTooLarge { limitBytes actualBytes }
  }
}`;

describe.each(databases())('jobs by GraphQL on $name', ({ open }) => {
  let service: Service;

  beforeAll(async () => {
    service = await startService(open, { engine: { maxBytes: { input: 10_000, result: 10_000, checkpoint: 10_000 } } });
    await service.worker([
      taskNamed('echo'),
      taskNamed('people.import', { inputSchema: INPUT_SCHEMA, maxAttempts: 7 }),
    ]);
  });

  const submit = async (input: Record<string, unknown>) => (await service.post(SUBMIT, { input })).data.submitJob;
  const jobs = async () => (await service.post('{ jobs { totalCount } }')).data.jobs.totalCount;

  test('a job is accepted with what its task says, and what the caller says instead', async () => {
    const { job, ...payload } = await submit({
      task: 'people.import',
      input: { rows: [{ email: 'a@b.c' }] },
      title: 'People',
      tags: ['x', 'y'],
      priority: 3,
      timeout: '90s',
      delay: '1h',
    });
    expect(payload).toEqual({ __typename: 'SubmitJobPayload', deduplicated: false });
    expect(job).toMatchObject({
      state: 'SCHEDULED',
      title: 'People',
      queue: 'default',
      tags: ['x', 'y'],
      priority: 3,
      maxAttempts: 7,
      timeout: '90s',
      input: { rows: [{ email: 'a@b.c' }] },
    });
  });

  test('an input comes back exactly, from a variable and from the document alike', async () => {
    const input = {
      n: [1, -0.5, 1e20, 2 ** 53],
      s: 'é\u2028"\\',
      o: { null: null, empty: {} },
      l: [[], [null]],
      __proto: 1,
    };
    const inline =
      '{ n: [1, -0.5, 1e20, 9007199254740992], s: "é\\u2028\\"\\\\", o: { null: null, empty: {} }, l: [[], [null]], __proto: 1 }';
    const byVariable = await submit({ task: 'echo', input });
    const { data } = await service.post(
      `mutation { submitJob(input: { task: "echo", input: ${inline} }) { ... on SubmitJobPayload { job { input inputDigest } } } }`,
    );
    expect(byVariable.job.input).toEqual(input);
    expect(data.submitJob.job.input).toEqual(input);
  });

  test('no input is not the same as null', async () => {
    const given = async (input: Record<string, unknown>) => {
      const { job } = await submit({ task: 'echo', ...input });
      const [row] = await service.database.read.query<{ n: number }>(
        `select count(*)::int as n from waymark.payloads p join waymark.jobs j on j.id = p.job_id
         where p.kind = 'input' and j.created_at = (select max(created_at) from waymark.jobs)`,
      );
      expect(job.input).toBeNull();
      return row?.n;
    };
    expect(await given({ input: null })).toBe(1);
    expect(await given({})).toBe(0);
  });

  test('the same key and input give the same job; another input is a conflict that shows it', async () => {
    const first = await submit({ task: 'echo', input: { a: 1, b: 2 }, idempotencyKey: 'k' });
    const again = await submit({ task: 'echo', input: { b: 2, a: 1 }, idempotencyKey: 'k' });
    const other = await submit({ task: 'echo', input: { a: 2 }, idempotencyKey: 'k' });
    expect(again).toMatchObject({ deduplicated: true, job: { id: first.job.id } });
    expect(other).toMatchObject({
      __typename: 'IdempotencyConflict',
      code: 'IDEMPOTENCY_CONFLICT',
      job: { id: first.job.id },
    });
    expect(other.givenDigest).not.toBe(other.storedDigest);
  });

  describe('what cannot be is refused as data, and changes nothing', () => {
    const long = 'x'.repeat(201);
    test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
      [
        'an unknown task lists those there are',
        { task: 'nope' },
        { __typename: 'UnknownTask', task: 'nope', known: ['echo', 'people.import'] },
      ],
      [
        'a breach of the task’s schema says where',
        { task: 'people.import', input: { rows: [{ email: 'a@b.c' }, { email: 'x' }, {}] } },
        { issues: [{ path: 'input.rows[1].email' }, { path: 'input.rows[2].email', message: 'is required' }] },
      ],
      ['a missing input', { task: 'people.import' }, { issues: [{ path: 'input', message: 'is required' }] }],
      ['NUL in a string', { task: 'echo', input: { a: ['\u0000'] } }, { issues: [{ path: 'input.a[0]' }] }],
      ['NUL in a name', { task: 'echo', input: { 'a\u0000': 1 } }, { __typename: 'InvalidInput' }],
      ['half a surrogate pair', { task: 'echo', input: '\ud800' }, { issues: [{ path: 'input' }] }],
      ['NUL in a title', { task: 'echo', title: 'a\u0000' }, { issues: [{ path: 'title' }] }],
      ['NUL in the task’s name', { task: 'a\u0000' }, { __typename: 'UnknownTask' }],
      ['a title that is too long', { task: 'echo', title: long }, { issues: [{ path: 'title' }] }],
      ['a key that is too long', { task: 'echo', idempotencyKey: long }, { issues: [{ path: 'idempotencyKey' }] }],
      ['a priority out of range', { task: 'echo', priority: 101 }, { issues: [{ path: 'priority' }] }],
      ['no attempts', { task: 'echo', maxAttempts: 0 }, { issues: [{ path: 'maxAttempts' }] }],
      [
        'two times to start',
        { task: 'echo', runAt: '2030-01-01T00:00:00Z', delay: '1s' },
        { issues: [{ path: 'delay' }] },
      ],
      [
        'a backoff out of range',
        { task: 'echo', backoff: { type: 'FIXED', delay: '1s', jitter: 2 } },
        { issues: [{ path: 'backoff.jitter', message: 'must be from 0 to 1, not 2' }] },
      ],
      [
        'an input that is too large',
        { task: 'echo', input: 'x'.repeat(20_000) },
        { __typename: 'PayloadTooLarge', limitBytes: 10_000, actualBytes: 20_002 },
      ],
      [
        'nesting without end',
        { task: 'echo', input: JSON.parse(`${'['.repeat(1_000)}${']'.repeat(1_000)}`) },
        { __typename: 'InvalidInput' },
      ],
    ])('%s', async (_, input, wanted) => {
      const before = await jobs();
      expect(await submit(input)).toMatchObject(wanted);
      expect(await jobs()).toBe(before);
    });

    test.each<[string, Record<string, unknown>, RegExp]>([
      ['a negative duration', { task: 'echo', delay: '-5s' }, /Duration must be a duration such as/],
      ['a duration without a unit', { task: 'echo', timeout: '5' }, /Duration must be/],
      ['a moment without a zone', { task: 'echo', runAt: '2030-01-01T00:00:00' }, /DateTime must be an RFC 3339/],
      ['infinity', { task: 'echo', runAt: 'infinity' }, /DateTime must be/],
      ['a number for a text', { task: 'echo', title: 5 }, /String cannot represent/],
      ['an unknown field', { task: 'echo', inputs: {} }, /Field "inputs" is not defined/],
      ['no task', {}, /Field "task" of required type/],
    ])('%s is BAD_USER_INPUT', async (_, input, message) => {
      const before = await jobs();
      const { errors, data } = await service.post(SUBMIT, { input });
      expect(data).toBeUndefined();
      expect(errors?.[0]?.message).toMatch(message);
      expect(errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
      expect(await jobs()).toBe(before);
    });
  });

  describe('many at once', () => {
    const MANY = `mutation ($inputs: [SubmitJobInput!]!) {
      submitJobs(inputs: $inputs) {
        __typename
        ... on SubmitJobsPayload { results { deduplicated job { id title } } }
        ... on UserError { path code }
        ... on InvalidInput { issues { path } }
      }
    }`;
    const submitMany = async (inputs: object[]) => (await service.post(MANY, { inputs })).data.submitJobs;

    test('are accepted in order', async () => {
      const inputs = Array.from({ length: 250 }, (_, i) => ({ task: 'echo', title: `n${i}` }));
      const { results } = await submitMany(inputs);
      expect(results.map((r: { job: { title: string } }) => r.job.title)).toEqual(inputs.map((i) => i.title));
    });

    test.each<[string, object, object]>([
      [
        'a wrong input',
        { task: 'people.import', input: { rows: [{ email: 1 }] } },
        { path: 'inputs[2]', issues: [{ path: 'inputs[2].input.rows[0].email' }] },
      ],
      ['an unknown task', { task: 'nope' }, { __typename: 'UnknownTask', path: 'inputs[2]' }],
      [
        'a wrong backoff',
        { task: 'echo', backoff: { type: 'FIXED', delay: '1s', factor: 0 } },
        { path: 'inputs[2]', issues: [{ path: 'inputs[2].backoff.factor' }] },
      ],
      [
        'a key in use',
        { task: 'echo', input: 2, idempotencyKey: 'used' },
        { __typename: 'IdempotencyConflict', path: 'inputs[2]' },
      ],
    ])('%s among them refuses all, and says which', async (_, wrong, wanted) => {
      await submit({ task: 'echo', input: 1, idempotencyKey: 'used' });
      const before = await jobs();
      expect(await submitMany([{ task: 'echo' }, { task: 'echo' }, wrong])).toMatchObject(wanted);
      expect(await jobs()).toBe(before);
    });

    test('more than a thousand are refused', async () => {
      const inputs = Array.from({ length: 1_001 }, () => ({ task: 'echo' }));
      expect(await submitMany(inputs)).toMatchObject({ __typename: 'InvalidInput', issues: [{ path: 'inputs' }] });
    });
  });

  describe('verbs on a job', () => {
    const CANCEL = `mutation ($input: CancelJobInput!) { cancelJob(input: $input) {
      __typename ... on CancelJobPayload { job { id state run actions cancellation { requestedBy reason stoppedAt forced } } }
      ... on UserError { message code } ... on NotFound { id } ... on InvalidTransition { job { id state } } } }`;
    const RETRY = `mutation ($input: RetryJobInput!) { retryJob(input: $input) {
      __typename ... on RetryJobPayload { job { id state run actions } }
      ... on UserError { message code } ... on NotFound { id } ... on InvalidTransition { job { id run } }
      ... on InvalidInput { issues { path } } } }`;
    const RUN_NOW = `mutation ($input: RunJobNowInput!) { runJobNow(input: $input) {
      __typename ... on RunJobNowPayload { job { id state } } ... on UserError { code } ... on InvalidTransition { job { id } } } }`;
    const call = async (query: string, input: object) =>
      Object.values((await service.post(query, { input }, { 'x-waymark-actor': 'user:ada' })).data)[0] as Record<
        string,
        unknown
      >;

    test('cancel, again, and retry as the next run', async () => {
      const { job } = await submit({ task: 'echo' });
      const canceled = { id: job.id, state: 'CANCELED', run: 1, actions: ['RETRY'] };
      const cancellation = { requestedBy: 'user:ada', reason: 'because', forced: false, stoppedAt: expect.any(String) };
      for (let time = 1; time <= 2; time++) {
        expect(await call(CANCEL, { id: job.id, reason: 'because' })).toEqual({
          __typename: 'CancelJobPayload',
          job: { ...canceled, cancellation },
        });
      }
      expect(await call(RETRY, { id: job.id, expectedRun: 2 })).toMatchObject({
        __typename: 'InvalidTransition',
        job: { run: 1 },
      });
      expect(await call(RETRY, { id: job.id, expectedRun: 1 })).toMatchObject({
        job: { state: 'QUEUED', run: 2, actions: ['CANCEL'] },
      });
      expect(await call(RETRY, { id: job.id, expectedRun: 1 })).toMatchObject({
        __typename: 'InvalidTransition',
        job: { run: 2 },
      });
    });

    test('run now what waits for its time', async () => {
      const { job } = await submit({ task: 'echo', delay: '1h' });
      expect(await call(RUN_NOW, { id: job.id })).toMatchObject({ job: { state: 'QUEUED' } });
      expect(await call(RUN_NOW, { id: job.id })).toMatchObject({
        __typename: 'InvalidTransition',
        job: { id: job.id },
      });
    });

    test.each([CANCEL, RETRY, RUN_NOW])('an id that nobody has is NotFound, as given', async (query) => {
      const id = publicId('Job', newUuid());
      const answer = await call(query, { id });
      expect(answer).toMatchObject({ __typename: 'NotFound', code: 'NOT_FOUND' });
      if (query !== RUN_NOW) expect(answer).toMatchObject({ id, message: `job ${id} was not found` });
    });

    test.each([
      ['empty', '', /must begin with one of/],
      ['nonsense', 'nonsense', /must begin with one of/],
      ['a prefix alone', 'job_', /malformed/],
      ['cut short', 'job_01h455vb4pex5vsknk084sn02', /malformed/],
      ['far too long', `job_${'z'.repeat(10_000)}`, /malformed/],
      ['of something else', publicId('Worker', newUuid()), /is not the id of a Job/],
    ])('an id that is %s is BAD_USER_INPUT that names the argument', async (_, id, message) => {
      for (const query of [CANCEL, RETRY, RUN_NOW]) {
        const { errors } = await service.post(query, { input: { id } });
        expect(errors?.[0]?.message).toMatch(message);
        expect(errors?.[0]?.message.length).toBeLessThan(300);
        expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', argument: 'input.id' });
      }
      const { errors } = await service.post('query ($id: ID!) { job(id: $id) { id } }', { id });
      expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', argument: 'id' });
    });

    test('a reason that is too long has no place in the union: it is BAD_USER_INPUT', async () => {
      const { job } = await submit({ task: 'echo' });
      const { errors } = await service.post(CANCEL, { input: { id: job.id, reason: 'x'.repeat(501) } });
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT', issues: [{ path: 'reason' }] });
      expect((await service.post('query ($id: ID!) { job(id: $id) { state } }', { id: job.id })).data.job.state).toBe(
        'QUEUED',
      );
    });
  });

  test('queue and task: by name, by id, or null', async () => {
    const { data } = await service.post(`{
      task(name: "people.import") { id name inputSchema maxAttempts workers { state } } queue(name: "default") { id name }
      none: task(name: "nope") { id } nul: task(name: "\\u0000") { id } no: queue(name: "nope") { id } empty: queue(name: "\\u0000") { id }
    }`);
    expect(data).toMatchObject({
      task: { inputSchema: INPUT_SCHEMA, maxAttempts: 7, workers: [{ state: 'ACTIVE' }] },
      queue: { name: 'default' },
      none: null,
      nul: null,
      no: null,
      empty: null,
    });
    const byId = await service.post('query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }', {
      ids: [data.task.id, data.queue.id, publicId('Graph', newUuid())],
    });
    expect(byId.data.nodes).toEqual([
      { __typename: 'Task', id: data.task.id },
      { __typename: 'Queue', id: data.queue.id },
      null,
    ]);
  });

  test('the viewer is the header’s actor, else user:local', async () => {
    const viewer = async (headers: Record<string, string>) =>
      (await service.post('{ viewer { actor tenant } }', {}, headers)).data.viewer;
    expect(await viewer({})).toEqual({ actor: 'user:local', tenant: 'default' });
    expect(await viewer({ 'x-waymark-actor': 'user:ada@example.org' })).toMatchObject({
      actor: 'user:ada@example.org',
    });
  });
});
