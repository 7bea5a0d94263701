import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { type ConnectionState, createClient, type JobEvent, type WaymarkClient } from '../../src/client/index.ts';
import type { ClaimedJob } from '../../src/engine/types.ts';
import { type HandWorker, handWorker } from '../server/hand-worker.ts';
import { type Service, startService } from '../server/service.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { type HttpProxy, openProxy } from './proxy.ts';

type Options = Omit<Parameters<typeof createClient>[0], 'url'>;

describe.each(databases())('transports, over a proxy, on $name', ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  /** A client behind a proxy, with the states of its connection as they come. */
  async function behind(set: Partial<HttpProxy> = {}, options: Options = {}) {
    const proxy = Object.assign(await openProxy(service.url), set);
    const states: ConnectionState[] = [];
    const client = createClient({
      url: proxy.url,
      webSocket: WebSocket,
      retryTransportAfter: '100ms',
      onConnection: (state) => states.push(state),
      ...options,
    });
    onTestFinished(() => client.close());
    return { proxy, client, states };
  }

  async function runningJob(client: WaymarkClient<unknown>): Promise<{ id: string; save(n: number): Promise<void> }> {
    const { id } = await client.submit('echo');
    const { id: jobId, attempt, epoch }: ClaimedJob = await worker.start(id);
    let saved = 0;
    return {
      id,
      async save(n) {
        for (const end = saved + n; saved < end; saved++) {
          const key = `k${saved}`;
          await service.engine.execution.saveCheckpoint({ jobId, attempt, epoch, key, kind: 'STEP', data: '1' });
        }
      },
    };
  }

  /** Reads to the end and keeps what came. */
  function reading(client: WaymarkClient<unknown>, id: string) {
    const events: JobEvent[] = [];
    const versions: number[] = [];
    let last = '';
    const done = Promise.all([
      (async () => {
        for await (const event of client.job(id).events()) events.push(event);
      })(),
      (async () => {
        for await (const { version, state } of client.job(id).progress()) {
          versions.push(version);
          last = state;
        }
      })(),
    ]);
    // A test that failed before closes the client.
    done.catch(() => {});
    return {
      events,
      /** Until this many facts have come. */
      received: (n: number) => eventually(() => expect(events.length).toBeGreaterThanOrEqual(n), { timeoutMs: 25_000 }),
      async ended(lastSeq: number, state = 'COMPLETED') {
        await done;
        expect(events.map((e) => e.seq)).toEqual(Array.from({ length: lastSeq }, (_, i) => i + 1));
        expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
        expect(last).toBe(state);
      },
    };
  }

  const until = (states: ConnectionState[], state: ConnectionState) =>
    eventually(() => expect(states.at(-1)).toBe(state), { timeoutMs: 20_000 });

  test('a proxy that refuses upgrades: event streams, and a WebSocket again when it lets one through', async () => {
    const { proxy, client, states } = await behind({ upgrades: 'refuse' });
    const job = await runningJob(client);
    const reader = reading(client, job.id);
    await until(states, 'live');
    expect(proxy.seen.streams).toBeGreaterThanOrEqual(2);
    await job.save(3);
    await reader.received(5);
    expect(service.server.stats()).toMatchObject({ sockets: 0, eventStreams: 2 });
    proxy.upgrades = 'pass';
    await eventually(() => expect(service.server.stats()).toMatchObject({ sockets: 1, eventStreams: 0 }));
    await job.save(3);
    await worker.complete(job.id);
    await reader.ended(9);
    expect(states).toEqual(['reconnecting', 'live']);
  });

  test('a proxy that swallows upgrades and holds streams back: polling, and up again', async () => {
    const { proxy, client, states } = await behind({ upgrades: 'hold', streams: 'hold' });
    const job = await runningJob(client);
    const reader = reading(client, job.id);
    await until(states, 'polling');
    await job.save(250);
    await reader.received(252);
    proxy.upgrades = 'refuse';
    proxy.streams = 'pass';
    await until(states, 'live');
    await job.save(1);
    await reader.received(253);
    await worker.complete(job.id);
    await reader.ended(254);
    await eventually(() => expect(service.live.stats().streams).toBe(0));
  });

  test('nobody there at all: offline, then live again by the best transport', async () => {
    const { proxy, client, states } = await behind();
    const job = await runningJob(client);
    const reader = reading(client, job.id);
    await reader.received(2);
    proxy.isDown = true;
    proxy.cut();
    await until(states, 'offline');
    await job.save(5);
    proxy.isDown = false;
    await until(states, 'live');
    await reader.received(7);
    await eventually(() => expect(service.server.stats().sockets).toBe(1));
    await worker.complete(job.id);
    await reader.ended(8);
    expect(client.connection).toBe('live');
  });

  test('a browser keeps connections free for requests: streams beyond four are polled', async () => {
    Object.assign(globalThis, { document: {} });
    onTestFinished(() => void Reflect.deleteProperty(globalThis, 'document'));
    const { client } = await behind({ upgrades: 'refuse' }, { retryTransportAfter: '10m' });
    const jobs = await Promise.all(Array.from({ length: 6 }, () => client.submit('echo')));
    const readers = jobs.map((job) => job.events());
    for (const reader of readers) expect((await reader.next()).value).toMatchObject({ seq: 1 });
    expect(service.server.stats().eventStreams).toBe(4);
    for (const { id } of jobs) await worker.complete(id);
    for (const reader of readers) {
      const seqs: number[] = [];
      for await (const { seq } of reader) seqs.push(seq);
      expect(seqs).toEqual([2, 3]);
    }
  });

  test.each(['ws', 'sse', 'poll'] as const)('only %s, when that is asked for', async (transport) => {
    const { proxy, client, states } = await behind({}, { transport });
    const job = await runningJob(client);
    const reader = reading(client, job.id);
    await reader.received(2);
    proxy.cut();
    await job.save(4);
    await worker.fail(job.id);
    await reader.ended(8, 'FAILED');
    expect(states[0]).toBe(transport === 'poll' ? 'polling' : 'live');
    expect(proxy.seen.upgrades > 0).toBe(transport === 'ws');
    expect(proxy.seen.streams > 0).toBe(transport === 'sse');
  });

  test.each(['ws', 'sse', 'poll'] as const)(
    'a job that is not there is said so over %s, and no connection stays',
    async (transport) => {
      const { client } = await behind({}, { transport });
      const nobody = client.job('job_00000000000000000000000000');
      await expect(nobody.events().next()).rejects.toMatchObject({ code: 'NOT_FOUND' });
      await expect(nobody.progress().next()).rejects.toMatchObject({ code: 'NOT_FOUND' });
      await expect(client.watchGraph('gra_00000000000000000000000000').next()).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
      await eventually(() => expect(service.server.stats()).toMatchObject({ sockets: 0, eventStreams: 0 }));
    },
  );

  test('20 random breaks and changes of transport: each event once and in order, the gauge never back', async () => {
    const random = seededRandom();
    const below = (n: number) => Math.floor(random() * n);
    const { proxy, client, states } = await behind({}, { retryTransportAfter: '60ms' });
    const job = await runningJob(client);
    const reader = reading(client, job.id);
    let saved = 0;
    const save = async (n: number) => {
      await job.save(n);
      saved += n;
    };
    for (let n = 0; n < 20; n++) {
      await save(below(12));
      // In the middle of what is being sent, as often as not.
      if (below(2)) await reader.received(2 + saved);
      proxy.upgrades = below(2) ? 'pass' : 'refuse';
      proxy.streams = below(2) ? 'pass' : 'refuse';
      proxy.isDown = below(4) === 0;
      const sending = save(1 + below(5));
      proxy.cut();
      await sending;
      if (proxy.isDown) await eventually(() => expect(states.at(-1)).not.toBe('live'));
      proxy.isDown = false;
      if (below(3)) await reader.received(2 + saved);
    }
    await worker.complete(job.id);
    await reader.ended(3 + saved);
    expect(new Set(states).size).toBeGreaterThan(2);
  }, 120_000);

  test('lists say when they must be read again: at first, and after a break; while polling all the time', async () => {
    const { proxy, client, states } = await behind({}, { retryTransportAfter: '10m' });
    const watch = client.watch({ tags: ['watched'] }, { minInterval: '50ms' });
    const next = async () => (await watch.next()).value;
    expect(await next()).toEqual({ jobs: [], reset: true });
    const { id } = await client.submit('echo', undefined, { tags: ['watched'] });
    await client.submit('echo', undefined, { tags: ['other'] });
    expect(await next()).toMatchObject({ jobs: [{ id, state: 'QUEUED' }], reset: false });
    proxy.cut();
    expect(await next()).toEqual({ jobs: [], reset: true });
    proxy.upgrades = proxy.streams = 'refuse';
    proxy.cut();
    await until(states, 'polling');
    for (let n = 0; n < 3; n++) expect(await next()).toEqual({ jobs: [], reset: true });
    await watch.return?.();
  });

  test('approvals and graphs are watched, also by polling', async () => {
    for (const transport of ['ws', 'poll'] as const) {
      const { client } = await behind({}, { transport });
      const approvals = client.watchApprovals({ mine: true });
      expect((await approvals.next()).value).toEqual({ approvals: [], reset: true, openCount: 0 });
      await approvals.return?.();
      const submit = `mutation { submitGraph(input: { nodes: [
        { name: "a", job: { task: "echo" } }, { name: "b", job: { task: "echo" }, dependsOn: [{ node: "a" }] }
      ] }) { ... on SubmitGraphPayload { graph { id } } } }`;
      const { submitGraph } = await client.request<{ submitGraph: { graph: { id: string } } }>(submit);
      const whole = await client.graph(submitGraph.graph.id);
      expect(whole).toMatchObject({ edges: [{ from: 'a', to: 'b', policy: 'CANCEL' }] });
      const versions: number[] = [];
      let state = '';
      let isFirst = true;
      for await (const { graph, nodes, reset } of client.watchGraph(submitGraph.graph.id, { minInterval: '50ms' })) {
        if (isFirst) {
          expect([reset, nodes.map((node) => node.name)]).toEqual([true, ['a', 'b']]);
          const [a, b] = nodes.map((node) => node.job.id);
          void worker.complete(a ?? '').then(() => worker.complete(b ?? ''));
        }
        isFirst = false;
        versions.push(graph.version);
        state = graph.state;
      }
      expect(state).toBe('COMPLETED');
      expect(versions).toEqual(versions.toSorted((a, b) => a - b));
    }
  });
});
