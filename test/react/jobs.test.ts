import './dom.ts';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  useJob,
  useJobActions,
  useJobEvents,
  useJobProgress,
  useSubmitJob,
  WaymarkProvider,
} from '../../src/react/index.ts';
import { openProxy } from '../client/proxy.ts';
import { type HandWorker, handWorker } from '../server/hand-worker.ts';
import { type Service, startService } from '../server/service.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { connect, mount } from './page.ts';

function Page() {
  const { isLoading, connection } = useJob('job_00000000000000000000000000');
  return createElement('p', null, `${isLoading} ${connection}`);
}

describe.each(databases())('hooks of one job, on $name', ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  const api = () => `${service.url}/graphql`;
  const streams = (n: number) => eventually(() => expect(service.live.stats().streams).toBe(n));
  const isAscending = (versions: number[]) => expect(versions).toEqual(versions.toSorted((a, b) => a - b));

  test('components that show the same job share one stream, which ends a moment after the last of them', async () => {
    const client = connect(api());
    const { id } = await client.submit('echo', { a: 1 });
    const [a, b] = [
      mount(client, () => useJob(id)),
      mount(client, () => [useJobProgress(id), useJobActions(id)] as const),
    ];
    expect(a.renders[0]).toMatchObject({ data: undefined, isLoading: true, error: undefined });
    await eventually(() => {
      expect(a.now()).toMatchObject({ data: { id, state: 'QUEUED', input: { a: 1 } }, isLoading: false });
      expect(b.now()[0]).toMatchObject({ data: { id, state: 'QUEUED' }, connection: 'live' });
    });
    expect(a.now().data?.waitingOn).toMatchObject({ kind: expect.any(String) });
    expect(service.live.stats().streams).toBe(1);
    a.unmount();
    const c = mount(client, () => useJobProgress(id));
    b.unmount();
    expect(c.now()).toMatchObject({ data: { id }, isLoading: false });
    expect(service.live.stats().streams).toBe(1);
    c.unmount();
    await streams(0);
  });

  test('StrictMode mounts everything twice and opens one stream', async () => {
    const proxy = await openProxy(service.url);
    const client = connect(proxy.url, { transport: 'sse' });
    const { id } = await client.submit('echo');
    const page = mount(client, () => useJobEvents(id), { strict: true });
    await eventually(() => expect(page.now().data?.map((e) => e.seq)).toEqual([1]));
    expect(proxy.seen.streams).toBe(1);
    page.unmount();
    await streams(0);
  });

  test('a retry pressed in another client is seen; COMPLETED never comes without its result', async () => {
    const [client, other] = [connect(api()), connect(api())];
    const { id } = await client.submit('echo');
    const page = mount(client, () => useJob<number>(id));
    const events = mount(client, () => useJobEvents(id));
    await worker.fail(id);
    await eventually(() => expect(page.now().data).toMatchObject({ state: 'FAILED', error: { message: 'disk full' } }));
    await other.retry(id);
    await eventually(() => expect(page.now().data).toMatchObject({ state: 'QUEUED', run: 2 }));
    await worker.complete(id);
    await eventually(() => expect(page.now().data).toMatchObject({ state: 'COMPLETED', result: 1 }));
    await eventually(() => expect(events.now().data?.at(-1)?.type).toBe('JobCompleted'));
    expect(events.now().data?.map((e) => e.seq)).toEqual(events.now().data?.map((_, i) => i + 1));
    const shown = page.renders.flatMap(({ data }) => data ?? []);
    isAscending(shown.map((job) => job.version));
    for (const job of shown) if (job.state === 'COMPLETED') expect(job.result).toBe(1);
  });

  test('over breaks and changes of transport nothing comes twice and nothing goes back', async () => {
    const proxy = await openProxy(service.url);
    const client = connect(proxy.url);
    const { id } = await client.submit('echo');
    const page = mount(client, () => ({ job: useJob(id), events: useJobEvents(id) }));
    const reported = (n: number) => eventually(() => expect(page.now().job.data?.progress?.current).toBe(n));
    await worker.start(id);
    await worker.report(id, 1, 4);
    await reported(1);
    proxy.upgrades = 'refuse';
    proxy.cut();
    await worker.report(id, 2, 4);
    await reported(2);
    proxy.isDown = true;
    proxy.cut();
    await eventually(() => expect(page.now().job.connection).toBe('offline'));
    expect(page.now().job.data).toMatchObject({ state: 'RUNNING', progress: { current: 2 } });
    await worker.report(id, 3, 4);
    await worker.complete(id);
    proxy.isDown = false;
    await eventually(() => expect(page.now().job).toMatchObject({ data: { state: 'COMPLETED' }, connection: 'live' }));
    await eventually(() => expect(page.now().events.data?.map((e) => e.seq)).toEqual([1, 2, 3]));
    isAscending(page.renders.flatMap(({ job }) => job.data?.version ?? []));
    for (const { events } of page.renders)
      expect(events.data ?? []).toEqual(page.now().events.data?.slice(0, events.data?.length ?? 0));
  });

  test('only what is allowed now can be done, and the run that is shown is meant', async () => {
    const client = connect(api());
    const { id } = await client.submit('echo');
    const page = mount(client, () => useJobActions(id));
    const offers = (...names: string[]) =>
      eventually(() => {
        const actions = page.now();
        const offered = (['cancel', 'retry', 'runNow', 'approve', 'reject'] as const).filter((name) => actions[name]);
        expect(offered).toEqual(names);
      });
    await offers('cancel');
    const stale = page.now();
    await page.now().cancel?.({ reason: 'enough' });
    await offers('retry');
    const [first, second] = [page.now().retry?.(), page.now().retry?.()];
    const settled = await Promise.allSettled([first, second]);
    expect(settled.map((s) => s.status).sort()).toEqual(['fulfilled', 'rejected']);
    await offers('cancel');
    await expect(stale.cancel?.()).rejects.toMatchObject({ code: 'INVALID_TRANSITION' });
    await eventually(() => expect(page.now().error).toMatchObject({ code: 'INVALID_TRANSITION' }));
  });

  test('no id: nothing is loaded; an unknown one is an error; another one shows nothing of the first', async () => {
    const client = connect(api());
    const { id } = await client.submit('echo');
    const page = mount(client, ({ id }: { id: string | null }) => useJob(id), {
      initialProps: { id: null } as { id: string | null },
    });
    expect(page.now()).toMatchObject({ data: undefined, isLoading: false });
    page.rerender({ id });
    await eventually(() => expect(page.now().data?.id).toBe(id));
    const before = page.renders.length;
    page.rerender({ id: 'job_00000000000000000000000000' });
    await eventually(() => expect(page.now()).toMatchObject({ error: { code: 'NOT_FOUND' }, isLoading: false }));
    for (const { data } of page.renders.slice(before)) expect(data).toBeUndefined();
  });

  test('submit: the handle, or the error', async () => {
    const client = connect(api());
    const page = mount(client, ({ task }: { task: string }) => useSubmitJob(task), { initialProps: { task: 'echo' } });
    expect(page.now()).toMatchObject({ data: undefined, isLoading: false });
    const submitting = page.now().submit({ x: 1 }, { title: 'Mine' });
    const { id } = await submitting;
    await eventually(() =>
      expect(page.now()).toMatchObject({ data: { id, job: { title: 'Mine' } }, isLoading: false }),
    );
    expect(page.renders.some((render) => render.isLoading)).toBe(true);
    page.rerender({ task: 'nothing' });
    await expect(page.now().submit()).rejects.toMatchObject({ code: 'UNKNOWN_TASK' });
    await eventually(() => expect(page.now().error).toMatchObject({ code: 'UNKNOWN_TASK' }));
    page.now().reset();
    await eventually(() => expect(page.now()).toMatchObject({ data: undefined, error: undefined, isLoading: false }));
  });

  test('a server renders that it is loading, and opens nothing', async () => {
    const client = connect(api());
    expect(renderToString(createElement(WaymarkProvider, { client }, createElement(Page)))).toBe(
      '<p>true reconnecting</p>',
    );
    expect(() => renderToString(createElement(Page))).toThrow('WaymarkProvider');
  });
});
