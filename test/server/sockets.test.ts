import { once } from 'node:events';
import { beforeEach, describe, expect, test } from 'vitest';
import { newUuid, publicId } from '../../src/core/ids.ts';
import type { Executor } from '../../src/db/types.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me, taskNamed } from '../support/factory.ts';
import { SocketClient } from './clients.ts';
import { type Service, startService } from './service.ts';

const EVENTS =
  'subscription ($id: ID!, $after: Int, $u: Boolean) { jobEvents(id: $id, after: $after, untilTerminal: $u) { __typename seq state ... on JobCompleted { result } } }';
const DATA = 'subscription ($id: ID!) { jobEvents(id: $id) { seq ... on CheckpointSaved { checkpoint { data } } } }';
const PROGRESS =
  'subscription ($id: ID!) { jobProgress(id: $id) { version state progress { current } attempts { nodes { number outcome } } } }';
const CHANGES =
  'subscription ($filter: JobFilter) { jobsChanged(filter: $filter, minInterval: "50ms") { reset jobs { id state } } }';

describe.each(databases())('GraphQL over WebSocket on $name', ({ open }) => {
  let service: Service;
  let workerId: string;

  beforeEach(async () => {
    service = await startService(open, { server: { limits: { socket: { operations: 5, initMs: 200 } } } });
    workerId = await service.worker([taskNamed('echo')]);
  });

  const connect = (params?: Record<string, unknown>) => new SocketClient(service.url).start(params);
  const submit = async (): Promise<string> =>
    (await service.post('mutation { submitJob(input: { task: "echo" }) { ... on SubmitJobPayload { job { id } } } }'))
      .data.submitJob.job.id;
  const complete = async (engine = service.engine) => {
    const [job] = await engine.execution.claim(workerId, { queues: null, tasks: ['echo'], limit: 1 });
    if (!job) throw new Error('nothing to claim');
    const result = '{"answer":42}';
    await engine.execution.settle({
      jobId: job.id,
      attempt: job.attempt,
      outcome: 'SUCCEEDED',
      result,
      resultDigest: '-',
    });
  };

  test('facts come in order, each once, and the stream completes after the terminal one', async () => {
    const id = await submit();
    const client = await connect();
    client.subscribe('1', EVENTS, { id });
    expect((await client.next((m) => m.id === '1')).payload.data.jobEvents).toMatchObject({
      seq: 1,
      __typename: 'JobSubmitted',
    });
    await complete();
    const rest = await client.all('1');
    expect(rest.map((m) => m.payload?.data.jobEvents)).toEqual([
      { __typename: 'AttemptStarted', seq: 2, state: 'RUNNING' },
      { __typename: 'JobCompleted', seq: 3, state: 'COMPLETED', result: { answer: 42 } },
      undefined,
    ]);
    client.subscribe('2', EVENTS, { id, after: 3 });
    expect(await client.all('2')).toEqual([{ id: '2', type: 'complete' }]);
  });

  test('the job as it is, then as it changes; what belongs to it is as of then', async () => {
    const id = await submit();
    const client = await connect();
    client.subscribe('1', PROGRESS, { id });
    const first = (await client.next((m) => m.id === '1')).payload.data.jobProgress;
    expect(first).toMatchObject({ state: 'QUEUED', attempts: { nodes: [] } });
    await complete();
    const values = (await client.all('1')).flatMap((m) => m.payload?.data.jobProgress ?? []);
    expect(values.at(-1)).toMatchObject({
      state: 'COMPLETED',
      attempts: { nodes: [{ number: 1, outcome: 'SUCCEEDED' }] },
    });
    const versions = [first, ...values].map((v) => v.version);
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
  });

  test('a list is told to read, then what came and what left', async () => {
    const client = await connect();
    client.subscribe('1', CHANGES, { filter: { states: ['QUEUED'] } });
    expect((await client.next()).payload.data.jobsChanged).toEqual({ reset: true, jobs: [] });
    const id = await submit();
    expect((await client.next()).payload.data.jobsChanged).toEqual({ reset: false, jobs: [{ id, state: 'QUEUED' }] });
    await complete();
    expect((await client.next()).payload.data.jobsChanged.jobs).toEqual([
      { id, state: expect.stringMatching(/RUNNING|COMPLETED/) },
    ]);
  });

  test('queries are served, mutations are not', async () => {
    const client = await connect({ 'x-waymark-actor': 'user:ada' });
    client.subscribe('q', '{ viewer { actor } }');
    expect((await client.all('q'))[0]?.payload).toEqual({ data: { viewer: { actor: 'user:ada' } } });
    client.subscribe('m', 'mutation { submitJob(input: { task: "echo" }) { __typename } }');
    expect((await client.all('m'))[0]).toMatchObject({
      type: 'error',
      payload: [{ message: /mutations are not served/, extensions: { code: 'BAD_USER_INPUT' } }].map((e) => ({
        ...e,
        message: expect.stringMatching(e.message),
      })),
    });
    expect((await service.post('{ jobs { totalCount } }')).data.jobs.totalCount).toBe(0);
  });

  test('whatever an operation breaks, only it ends: the socket and its other streams go on', async () => {
    const id = await submit();
    const client = await connect();
    client.subscribe('good', EVENTS, { id });
    await client.next((m) => m.id === 'good');
    const wrong: [string, Record<string, unknown>, string][] = [
      ['subscription { jobEvents(', {}, 'GRAPHQL_PARSE_FAILED'],
      [' ', {}, 'GRAPHQL_PARSE_FAILED'],
      ['subscription { jobEvnts(id: "x") { seq } }', {}, 'GRAPHQL_VALIDATION_FAILED'],
      ['query A { __typename } query B { __typename }', {}, 'BAD_USER_INPUT'],
      [EVENTS, {}, 'BAD_USER_INPUT'],
      [EVENTS, { id: 'nonsense' }, 'BAD_USER_INPUT'],
      [EVENTS, { id, after: -1 }, 'BAD_USER_INPUT'],
      [EVENTS, { id, after: 999 }, 'CURSOR_INVALID'],
      [EVENTS, { id: publicId('Job', newUuid()) }, 'NOT_FOUND'],
      [PROGRESS, { id: publicId('Job', newUuid()) }, 'NOT_FOUND'],
      ['subscription { jobsChanged(minInterval: "1ms") { reset } }', {}, 'BAD_USER_INPUT'],
      ['subscription ($f: JobFilter) { jobsChanged(filter: $f) { reset } }', { f: { ids: ['x'] } }, 'BAD_USER_INPUT'],
      [`{ ${'__typename '.repeat(5_000)} }`, {}, 'QUERY_TOO_COMPLEX'],
      [
        `{ ${Array.from({ length: 60 }, (_, i) => `a${i}: __typename`).join(' ')} ${Array.from({ length: 60 }, (_, i) => `b${i}: viewer { actor }`).join(' ')} }`,
        {},
        'QUERY_TOO_COMPLEX',
      ],
      [
        `subscription ($id: ID!) { jobProgress(id: $id) {
          events(first: 1000) { nodes { seq at state run attempt actor summary jobId } }
          attempts(first: 200) { nodes { number run outcome startedAt finishedAt workerId resumedFrom heartbeatAt } }
          logs(first: 200) { nodes { at level message } } } }`,
        { id },
        'QUERY_TOO_COMPLEX',
      ],
    ];
    for (const [i, [query, variables, code]] of wrong.entries()) {
      client.subscribe(`w${i}`, query, variables);
      const [message] = await client.all(`w${i}`);
      const errors = message?.type === 'error' ? message.payload : message?.payload.errors;
      expect([query.slice(0, 60), errors?.[0]?.extensions]).toEqual([
        query.slice(0, 60),
        expect.objectContaining({ code }),
      ]);
      expect(JSON.stringify(errors)).not.toMatch(/node_modules|"http"/);
    }
    await complete();
    expect((await client.all('good')).at(-1)?.type).toBe('complete');
    expect(client.socket.readyState).toBe(client.socket.OPEN);
    expect(service.errors).toEqual([]);
  });

  test('one operation too many is refused, the others go on', async () => {
    const client = await connect();
    for (let i = 1; i <= 6; i++) client.subscribe(String(i), CHANGES);
    expect(await client.next((m) => m.type === 'error')).toEqual({
      id: '6',
      type: 'error',
      payload: [
        {
          message: 'a socket may have 5 operations at once',
          extensions: { code: 'LIMIT_EXCEEDED', limit: 5, retryAfterMs: null },
        },
      ],
    });
    for (let i = 1; i <= 5; i++) await client.next((m) => m.id === String(i) && m.type === 'next');
  });

  test('a client that leaves frees what it watched: by complete, by closing, by dying', async () => {
    const id = await submit();
    const streams = (n: number) => eventually(() => expect(service.live.stats().streams).toBe(n), { timeoutMs: 1_000 });
    const leave: ((client: SocketClient) => void)[] = [
      (client) => client.send({ id: '1', type: 'complete' }),
      (client) => client.socket.close(),
      (client) => client.socket.terminate(),
    ];
    for (const go of leave) {
      const client = await connect();
      client.subscribe('1', EVENTS, { id, u: false });
      await client.next((m) => m.type === 'next');
      await streams(1);
      go(client);
      await streams(0);
    }
    const hasty = await connect();
    hasty.subscribe('1', PROGRESS, { id });
    hasty.send({ id: '1', type: 'complete' });
    hasty.subscribe('2', '{ __typename }');
    await hasty.all('2');
    await streams(0);
    expect(service.live.stats()).toMatchObject({ topics: 0, subscriptions: 0 });
  });

  test('a client that stops reading for a while is sent every fact when it reads again', async () => {
    const id = await submit();
    const [job] = await service.engine.execution.claim(workerId, { queues: null, tasks: ['echo'], limit: 1 });
    if (!job) throw new Error('nothing to claim');
    const client = await connect();
    client.subscribe('1', DATA, { id });
    await client.next();
    client.socket.pause();
    // More than the buffers of a connection hold. (That no more is read meanwhile is a trial of its own: `live-stall`.)
    const data = JSON.stringify('x'.repeat(100_000));
    for (let n = 0; n < 150; n++) {
      const { id: jobId, attempt, epoch } = job;
      await service.engine.execution.saveCheckpoint({ jobId, attempt, epoch, key: `${n}`, kind: 'VALUE', data });
    }
    client.socket.resume();
    for (let seq = 2; seq <= 152; seq++) {
      const { payload } = await client.next((m) => m.type === 'next');
      expect(payload.data.jobEvents.seq).toBe(seq);
    }
  });

  test('many watchers of a job share its reads, and those of what they select beyond it', async () => {
    const { database } = service;
    let statements = 0;
    const read: Executor = {
      query: (text, params) => {
        statements++;
        return database.read.query(text, params);
      },
    };
    const counted = await startService(open, { database, read });
    const { jobId } = await counted.engine.jobs.submit(me, { task: 'echo' });
    const clients = await Promise.all(Array.from({ length: 20 }, () => new SocketClient(counted.url).start()));
    for (const client of clients) client.subscribe('1', PROGRESS, { id: publicId('Job', jobId) });
    for (const client of clients) await client.next();
    await complete(counted.engine);
    for (const client of clients) await client.all('1');
    expect(counted.live.stats().reads.rows).toBeLessThanOrEqual(5);
    // Their attempts, at each of up to three versions: a few statements, and not twenty times as many.
    expect(statements).toBeLessThanOrEqual(15);
  });

  describe('who may not come in', () => {
    const refused = async (client: SocketClient) => {
      const [, response] = (await once(client.socket, 'unexpected-response')) as [unknown, { statusCode: number }];
      return response.statusCode;
    };

    test('a page of a foreign origin: 403', async () => {
      expect(await refused(new SocketClient(service.url, { origin: 'https://evil.example' }))).toBe(403);
      await new SocketClient(service.url, { origin: service.url }).start();
    });

    test('a name that points here: 403', async () => {
      expect(await refused(new SocketClient(service.url, { headers: { host: 'evil.example' } }))).toBe(403);
    });

    test('who says nothing: 4408, who is nobody: 4403, who speaks another protocol: 4406', async () => {
      expect(await new SocketClient(service.url).closed).toMatchObject({ code: 4408 });
      for (const actor of ['system:x', 'group:editors', 'ada']) {
        const nobody = new SocketClient(service.url);
        await once(nobody.socket, 'open');
        nobody.send({ type: 'connection_init', payload: { 'x-waymark-actor': actor } });
        expect(await nobody.closed).toMatchObject({ code: 4403 });
      }
      const other = new SocketClient(service.url, { protocol: 'graphql-ws' });
      expect((await other.closed).code).toBe(1006);
    });

    test('a breach of the protocol closes with its code, and logs nothing', async () => {
      const breaches: [(client: SocketClient) => void, number][] = [
        [(client) => client.send('nonsense'), 4400],
        [(client) => client.send({ type: 'connection_init' }), 4429],
        [(client) => client.send({ id: '1', type: 'subscribe', payload: { query: CHANGES } }), 4409],
        [(client) => client.send('x'.repeat(300_000)), 1009],
      ];
      for (const [breach, code] of breaches) {
        const client = await connect();
        client.subscribe('1', CHANGES);
        await client.next();
        breach(client);
        expect(await client.closed).toMatchObject({ code });
      }
      expect(service.errors).toEqual([]);
    });
  });

  test('when the server closes, clients are sent away to come back: 1012', async () => {
    const client = await connect();
    client.subscribe('1', CHANGES);
    await client.next();
    await service.server.close();
    expect(await client.closed).toEqual({ code: 1012, reason: 'Service restart' });
    expect(service.live.stats().streams).toBe(0);
    await expect(fetch(service.url)).rejects.toThrow();
  });
});
