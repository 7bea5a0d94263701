import { connect } from 'node:net';
import { createClient } from 'graphql-sse';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newUuid, publicId } from '../../src/core/ids.ts';
import type { Executor } from '../../src/db/types.ts';
import { databases } from '../support/database.ts';
import { deferred, eventually, within } from '../support/eventually.ts';
import { taskNamed } from '../support/factory.ts';
import { type EventStreamClient, openEventStream } from './clients.ts';
import { type Service, startService } from './service.ts';

const EVENTS = 'subscription ($id: ID!, $after: Int) { jobEvents(id: $id, after: $after) { __typename seq } }';
const CHANGES = 'subscription { jobsChanged(minInterval: "50ms") { reset jobs { id input } } }';

describe.each(databases())('server-sent events on $name', ({ open }) => {
  let service: Service;
  let workerId: string;

  beforeEach(async () => {
    service = await startService(open, { server: { limits: { stallMs: 400 } } });
    workerId = await service.worker([taskNamed('echo')]);
  });

  const submit = async (input?: unknown): Promise<string> => {
    const query =
      'mutation ($input: JSON) { submitJob(input: { task: "echo", input: $input }) { ... on SubmitJobPayload { job { id } } } }';
    return (await service.post(query, { input })).data.submitJob.job.id;
  };
  const complete = async () => {
    const [job] = await service.engine.execution.claim(workerId, { queues: null, tasks: ['echo'], limit: 1 });
    if (!job) throw new Error('nothing to claim');
    await service.engine.execution.settle({
      jobId: job.id,
      attempt: job.attempt,
      outcome: 'SUCCEEDED',
      result: '1',
      resultDigest: '-',
    });
  };
  const first = async (stream: EventStreamClient) => {
    for await (const message of stream) if (message !== 'ping') return message;
    return undefined;
  };
  const streams = (n: number) =>
    eventually(
      () => {
        expect(service.live.stats().streams).toBe(n);
        expect(service.server.stats().eventStreams).toBe(n);
      },
      { timeoutMs: 1_000 },
    );

  test('a stream says what it is, sends next and complete, and is not held back by proxies', async () => {
    const id = await submit();
    const stream = await openEventStream(service.url, EVENTS, { id });
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream');
    expect(stream.response.headers.get('x-accel-buffering')).toBe('no');
    expect(stream.response.headers.get('cache-control')).toBe('no-cache');
    await streams(1);
    await complete();
    expect(await stream.values()).toEqual([
      { data: { jobEvents: { __typename: 'JobSubmitted', seq: 1 } } },
      { data: { jobEvents: { __typename: 'AttemptStarted', seq: 2 } } },
      { data: { jobEvents: { __typename: 'JobCompleted', seq: 3 } } },
    ]);
    await streams(0);
  });

  test('a stream that is refused for its variables is refused as a query is: 400, with what is wrong', async () => {
    for (const query of [
      EVENTS,
      'query ($id: ID!, $after: Int) { job(id: $id) { events(after: $after) { nodes { seq } } } }',
    ]) {
      const stream = await openEventStream(service.url, query, { id: 'job_1', after: 'soon' });
      const { errors } = (await first(stream)) as { errors: { message: string; extensions: { code: string } }[] };
      expect([stream.response.status, errors[0]?.extensions.code]).toEqual([400, 'BAD_USER_INPUT']);
      expect(errors[0]?.message).toContain('$after');
    }
    await streams(0);
  });

  test('an idle stream is kept alive', async () => {
    const stream = await openEventStream(service.url, EVENTS, { id: await submit(), after: 1 });
    let pings = 0;
    for await (const message of stream) {
      expect(message).toBe('ping');
      if (++pings === 3) break;
    }
  });

  test('the client of graphql-sse understands it', async () => {
    const id = await submit();
    const client = createClient({ url: `${service.url}/graphql` });
    onTestFinished(() => client.dispose());
    const seen: unknown[] = [];
    await complete();
    for await (const { data } of client.iterate<{ jobEvents: { seq: number } }>({ query: EVENTS, variables: { id } })) {
      seen.push(data?.jobEvents.seq);
    }
    expect(seen).toEqual([1, 2, 3]);
  });

  test.each<[string, string, Record<string, unknown>, string]>([
    ['nobody’s id', EVENTS, { id: publicId('Job', newUuid()) }, 'NOT_FOUND'],
    ['no id', EVENTS, { id: 'x' }, 'BAD_USER_INPUT'],
    ['a syntax error', 'subscription {', {}, 'GRAPHQL_PARSE_FAILED'],
    [
      'too much',
      'subscription { jobsChanged { jobs { events(first: 1000) { nodes { seq at } } } } }',
      {},
      'QUERY_TOO_COMPLEX',
    ],
  ])('%s is one typed error, then complete', async (_, query, variables, code) => {
    const values = await (await openEventStream(service.url, query, variables)).values();
    expect(values).toHaveLength(1);
    expect(values[0]?.errors?.[0]?.extensions.code).toBe(code);
    expect(service.errors).toEqual([]);
  });

  test('a job that is removed in mid-stream ends it as NOT_FOUND', async () => {
    const id = await submit();
    const stream = await openEventStream(service.url, EVENTS, { id });
    const reading = stream.values();
    await streams(1);
    for (const table of ['jobs', 'job_states']) await service.database.work.query(`delete from waymark.${table}`);
    expect((await within(20_000, reading)).at(-1)?.errors?.[0]?.extensions).toEqual({ code: 'NOT_FOUND', id });
  });

  test('a client that hangs up frees what it watched, also while nothing happens', async () => {
    const id = await submit();
    const idle = await openEventStream(service.url, EVENTS, { id, after: 1 });
    const list = await openEventStream(service.url, CHANGES);
    await first(list);
    await eventually(() => expect(service.live.stats().streams).toBeGreaterThan(0));
    idle.abort();
    list.abort();
    await streams(0);
    expect(service.live.stats()).toMatchObject({ topics: 0, tenants: 0, subscriptions: 0 });
  });

  test('a client that does not read is cut off after a while, and holds nothing', async () => {
    const { port } = new URL(service.url);
    const socket = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const body = JSON.stringify({ query: CHANGES });
    socket.write(
      `POST /graphql HTTP/1.1\r\nhost: localhost:${port}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    socket.pause();
    await eventually(() => expect(service.server.stats().eventStreams).toBe(1));
    const input = 'x'.repeat(900_000);
    for (let sent = 0; sent < 40 && service.server.stats().eventStreams > 0; sent++) await submit(input);
    await eventually(() => expect(service.server.stats().eventStreams).toBe(0));
    await eventually(() => expect(service.live.stats().streams).toBe(0));
    expect(service.errors).toEqual([]);
  });

  test('when the server closes, a stream is cut without complete: its client knows that there was more', async () => {
    const stream = await openEventStream(service.url, EVENTS, { id: await submit() });
    const reading = stream.values();
    await streams(1);
    await Promise.all([expect(reading).rejects.toThrow(), service.server.close()]);
    expect(service.live.stats().streams).toBe(0);
  });

  test('a request whose client is gone does no more work', async () => {
    const gate = deferred();
    let statements = 0;
    const slow: Executor = {
      query: async (text, params) => {
        statements++;
        await gate.promise;
        return service.database.read.query(text, params);
      },
    };
    const held = await startService(open, { database: service.database, read: slow });
    await submit();
    const abort = new AbortController();
    const asked = fetch(`${held.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ jobs { nodes { attempts { nodes { number } } events { lastSeq } } } }' }),
      signal: abort.signal,
    });
    await eventually(() => expect(statements).toBe(1));
    abort.abort();
    await expect(asked).rejects.toThrow();
    await held.post('{ __typename }');
    gate.resolve();
    await held.post('{ queues { name } }');
    expect(statements).toBe(2);
    expect(held.errors).toEqual([]);
  });
});
