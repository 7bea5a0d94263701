import { beforeAll, describe, expect, test } from 'vitest';
import { newUuid, publicId } from '../../src/core/ids.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { SocketClient } from './clients.ts';
import { type HandWorker, handWorker } from './hand-worker.ts';
import { type Service, startService } from './service.ts';

const SUBMIT = `mutation ($input: SubmitGraphInput!) { submitGraph(input: $input) {
  ... on SubmitGraphPayload { graph { id nodes { name job { id } } } } } }`;
const WATCH = `subscription ($id: ID!, $untilTerminal: Boolean, $minInterval: Duration = "50ms") {
  graphProgress(id: $id, untilTerminal: $untilTerminal, minInterval: $minInterval) { reset
    graph { id state version finishedAt progress { current total } counts { state count } nodes { name } }
    nodes { name deduplicated job { id state progress { current } attempts(first: 3) { nodes { number } } } } } }`;

describe.each(databases())('watching a graph over a WebSocket on $name', ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  const connect = () => new SocketClient(service.url).start();
  const graphOf = async (...nodes: [name: string, ...on: string[]][]) => {
    const input = {
      nodes: nodes.map(([name, ...on]) => ({ name, job: { task: 'echo' }, dependsOn: on.map((node) => ({ node })) })),
    };
    const { graph } = (await service.post(SUBMIT, { input })).data.submitGraph;
    const jobs = Object.fromEntries(graph.nodes.map((n: { name: string; job: { id: string } }) => [n.name, n.job.id]));
    return { id: graph.id as string, job: (name: string) => jobs[name] as string };
  };
  const next = async (client: SocketClient, id = '1') =>
    (await client.next((m) => m.id === id && m.type === 'next')).payload.data.graphProgress;
  const names = (message: { nodes: { name: string }[] }) => message.nodes.map((n) => n.name);

  test('all nodes first, then those that changed, up to the end of the last', async () => {
    const g = await graphOf(['a'], ['b', 'a'], ['c', 'b']);
    const client = await connect();
    client.subscribe('1', WATCH, { id: g.id });
    const first = await next(client);
    expect(first).toMatchObject({
      reset: true,
      graph: { id: g.id, state: 'QUEUED', progress: { current: 0, total: 3 } },
    });
    expect(names(first)).toEqual(['a', 'b', 'c']);
    await worker.start(g.job('a'));
    expect(await next(client)).toMatchObject({
      reset: false,
      graph: { state: 'RUNNING' },
      nodes: [{ name: 'a', job: { state: 'RUNNING', attempts: { nodes: [{ number: 1 }] } } }],
    });
    await worker.report(g.job('a'), 1, 2);
    expect(await next(client)).toMatchObject({
      graph: { progress: { current: 0.5 } },
      nodes: [{ name: 'a', job: { progress: { current: 1 } } }],
    });
    await worker.complete(g.job('a'));
    await worker.complete(g.job('b'));
    await worker.complete(g.job('c'));
    const rest = (await client.all('1')).flatMap((m) => m.payload?.data.graphProgress ?? []);
    const last = rest.at(-1);
    expect(last.graph).toMatchObject({ state: 'COMPLETED', progress: { current: 3, total: 3 } });
    expect(last.graph.finishedAt).not.toBeNull();
    expect(rest.every((m) => m.reset === false && m.nodes.length > 0)).toBe(true);
    expect(last.nodes).toContainEqual(expect.objectContaining({ name: 'c' }));
    const versions = [first, ...rest].map((m) => m.graph.version);
    expect(versions).toEqual([...versions].sort((x, y) => x - y));
    // What has ended is said once, whole.
    client.subscribe('2', WATCH, { id: g.id });
    const again = await client.all('2');
    expect(again.map((m) => m.type)).toEqual(['next', 'complete']);
    expect(names(again[0]?.payload.data.graphProgress)).toEqual(['a', 'b', 'c']);
    await eventually(() => expect(service.live.stats()).toMatchObject({ streams: 0, tenants: 0, subscriptions: 0 }));
  });

  test('a canceled root ends the graph, and the stream with it', async () => {
    const g = await graphOf(['a'], ['b', 'a'], ['c', 'a']);
    const client = await connect();
    client.subscribe('1', WATCH, { id: g.id });
    await next(client);
    await service.post('mutation ($id: ID!) { cancelJob(input: { id: $id }) { __typename } }', { id: g.job('a') });
    const last = (await client.all('1')).at(-2);
    expect(last?.payload.data.graphProgress.graph.state).toBe('CANCELED');
  });

  test('a stream that stays open tells of later runs', async () => {
    const g = await graphOf(['a']);
    await worker.complete(g.job('a'));
    const client = await connect();
    client.subscribe('1', WATCH, { id: g.id, untilTerminal: false });
    expect((await next(client)).graph.state).toBe('COMPLETED');
    await service.post('mutation ($id: ID!) { retryJob(input: { id: $id }) { __typename } }', { id: g.job('a') });
    expect(await next(client)).toMatchObject({ graph: { state: 'QUEUED', finishedAt: null }, nodes: [{ name: 'a' }] });
    client.send({ id: '1', type: 'complete' });
    await eventually(() => expect(service.live.stats().streams).toBe(0));
  });

  test('an unknown graph, an id of something else and a wrong interval are refused', async () => {
    const client = await connect();
    const g = await graphOf(['a']);
    const wrong: [Record<string, unknown>, string][] = [
      [{ id: publicId('Graph', newUuid()) }, 'NOT_FOUND'],
      [{ id: publicId('Job', newUuid()) }, 'BAD_USER_INPUT'],
      [{ id: g.id, minInterval: '1ms' }, 'BAD_USER_INPUT'],
      [{ id: g.id, minInterval: '2h' }, 'BAD_USER_INPUT'],
    ];
    for (const [i, [variables, code]] of wrong.entries()) {
      client.subscribe(`w${i}`, WATCH, variables);
      const [error] = await client.all(`w${i}`);
      const errors = error?.type === 'error' ? error.payload : error?.payload.errors;
      expect(errors[0].extensions.code).toBe(code);
    }
  });

  test('fifty who watch one graph cost as many reads as one', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `n${i}`);
    const g = await graphOf(...names.map((name): [string] => [name]));
    const client = await connect();
    for (let i = 0; i < 50; i++) client.subscribe(`s${i}`, WATCH, { id: g.id, minInterval: '50ms' });
    for (let i = 0; i < 50; i++) await next(client, `s${i}`);
    const before = service.live.stats().reads.rows;
    for (const name of names.slice(0, 10)) await worker.complete(g.job(name));
    for (let i = 0; i < 50; i++) {
      for (let completed = 0; completed < 10; ) {
        completed = (await next(client, `s${i}`)).graph.progress.current;
      }
    }
    // Ten ends and as many starts, each of which is read at most once.
    expect(service.live.stats().reads.rows - before).toBeLessThanOrEqual(20);
  });
});
