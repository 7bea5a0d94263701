import './dom.ts';
import { beforeAll, describe, expect, test } from 'vitest';
import { useGraph, useJobs } from '../../src/react/index.ts';
import { openProxy } from '../client/proxy.ts';
import { type HandWorker, handWorker } from '../server/hand-worker.ts';
import { type Service, startService } from '../server/service.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { connect, mount } from './page.ts';

describe.each(databases())('hooks of lists and graphs, on $name', ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  test.each(['ws', 'poll'] as const)(
    'a list follows what enters it, moves and leaves it, over %s',
    async (transport) => {
      const client = connect(`${service.url}/graphql`, { transport });
      const tags = [`list-${transport}`];
      const page = mount(client, () =>
        useJobs({ tags, states: ['QUEUED', 'RUNNING'] }, { orderBy: 'CREATED_ASC', minInterval: '50ms' }),
      );
      const shows = (...jobs: object[]) =>
        eventually(() => {
          expect(page.now().data).toHaveLength(jobs.length);
          expect(page.now().data).toMatchObject(jobs);
        });
      await shows();
      const { id: a } = await client.submit('echo', undefined, { tags });
      const { id: b } = await client.submit('echo', undefined, { tags });
      await shows({ id: a, state: 'QUEUED' }, { id: b, state: 'QUEUED' });
      await worker.start(a);
      await worker.report(a, 1, 2);
      await shows({ id: a, state: 'RUNNING', progress: { current: 1 } }, { id: b });
      await worker.complete(a);
      await shows({ id: b });
      // It does not come back, and what is shown is at no moment of another state.
      for (const { data } of page.renders)
        for (const job of data ?? []) expect(['QUEUED', 'RUNNING']).toContain(job.state);
      expect(page.now().connection).toBe(transport === 'ws' ? 'live' : 'polling');
    },
  );

  test('after a break the list is read again, without a flicker', async () => {
    const proxy = await openProxy(service.url);
    const client = connect(proxy.url);
    const tags = ['break'];
    const { id: a } = await client.submit('echo', undefined, { tags });
    const page = mount(client, () => useJobs({ tags }));
    await eventually(() => expect(page.now().data).toMatchObject([{ id: a }]));
    const loaded = page.renders.length - 1;
    proxy.isDown = true;
    proxy.cut();
    await eventually(() => expect(page.now().connection).toBe('offline'));
    const { id: b } = await connect(`${service.url}/graphql`).submit('echo', undefined, { tags });
    await worker.complete(a);
    proxy.isDown = false;
    await eventually(() => expect(page.now().data).toMatchObject([{ id: b }, { id: a, state: 'COMPLETED' }]));
    for (const { data, isLoading } of page.renders.slice(loaded)) {
      expect(isLoading).toBe(false);
      expect(data?.length).toBeGreaterThan(0);
    }
  });

  test('equal filters are one stream, in whatever order they are written', async () => {
    const client = connect(`${service.url}/graphql`);
    const streams = (n: number) => eventually(() => expect(service.live.stats().streams).toBe(n));
    await streams(0);
    const pages = [
      mount(client, () => useJobs({ tags: ['x'], states: ['FAILED'] })),
      mount(client, () => useJobs({ states: ['FAILED'], tags: ['x'] })),
    ];
    await eventually(() => expect(pages.map((page) => page.now().data)).toEqual([[], []]));
    expect(service.live.stats().streams).toBe(1);
    // Renders of the parent make new objects and change nothing.
    const { length } = pages[0]?.renders ?? [];
    pages[0]?.rerender(undefined);
    expect(pages[0]?.renders.length).toBe(length + 1);
    expect(pages[0]?.now()).toBe(pages[0]?.renders.at(-2));
  });

  test('a graph with its nodes and edges, over a later run', async () => {
    const client = connect(`${service.url}/graphql`);
    const submit = `mutation { submitGraph(input: { title: "G", nodes: [
      { name: "a", job: { task: "echo" } }, { name: "b", job: { task: "echo" }, dependsOn: [{ node: "a", policy: CONTINUE }] }
    ] }) { ... on SubmitGraphPayload { graph { id nodes { job { id } } } } } }`;
    const { submitGraph } = await client.request<{
      submitGraph: { graph: { id: string; nodes: { job: { id: string } }[] } };
    }>(submit);
    const [a = '', b = ''] = submitGraph.graph.nodes.map((node) => node.job.id);
    const page = mount(client, () => useGraph(submitGraph.graph.id));
    const shows = (state: string, ...nodes: string[]) =>
      eventually(() => {
        expect(page.now().data?.state).toBe(state);
        expect(page.now().data?.nodes.map((node) => node.job.state)).toEqual(nodes);
      });
    await shows('QUEUED', 'QUEUED', 'DEFERRED');
    expect(page.now().data).toMatchObject({ title: 'G', edges: [{ from: 'a', to: 'b', policy: 'CONTINUE' }] });
    await worker.fail(a);
    await worker.complete(b);
    await shows('FAILED', 'FAILED', 'COMPLETED');
    await client.retry(a);
    await worker.complete(a);
    await shows('COMPLETED', 'COMPLETED', 'COMPLETED');
    const versions = page.renders.flatMap(({ data }) => data?.version ?? []);
    expect(versions).toEqual(versions.toSorted((x, y) => x - y));
    const unknown = mount(client, () => useGraph('gra_00000000000000000000000000'));
    await eventually(() => expect(unknown.now().error).toMatchObject({ code: 'NOT_FOUND' }));
  });
});
