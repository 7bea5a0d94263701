import { describe, expect, test } from 'vitest';
import { NotFound, Unavailable } from '../../src/core/errors.ts';
import { newUuid } from '../../src/core/ids.ts';
import type { Executor } from '../../src/db/types.ts';
import { writeGraph } from '../../src/db/writes/graphs.ts';
import type { GraphChanged, LiveHub } from '../../src/engine/live/index.ts';
import { databases } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';
import { JobWriter } from './job-writer.ts';
import { collect, liveBench } from './live-bench.ts';

describe.each(databases())('graphProgress on $name', ({ open }) => {
  const bench = liveBench(open);

  /** A graph of running jobs, named n0, n1… */
  async function createGraph(size: number): Promise<{ id: string; jobs: JobWriter[] }> {
    const jobs: JobWriter[] = [];
    for (let i = 0; i < size; i++) jobs.push(await JobWriter.create(bench.writeDb));
    const id = newUuid();
    const row = {
      id,
      tenant: 'default',
      title: 'g',
      idempotencyKey: null,
      digest: '-',
      submittedBy: 'user:local',
      edges: [],
    };
    const nodes = jobs.map((job, i) => ({ name: `n${i}`, jobId: job.id, deduplicated: false }));
    await writeGraph(bench.writeDb, row, nodes);
    return { id, jobs };
  }
  const watch = (hub: LiveHub, id: string, options?: Parameters<LiveHub['graphProgress']>[2]) =>
    hub.graphProgress(me, id, { minIntervalMs: 20, ...options });
  const nextOf = async (stream: AsyncIterator<GraphChanged>) => {
    const next = await within(10_000, stream.next(), 'a message');
    if (next.done) throw new Error('the stream has ended');
    return next.value;
  };
  const names = ({ nodes }: GraphChanged) => nodes.map((n) => n.name);

  test('gathers what changed within an interval, each node once, as it is then', async () => {
    const { id, jobs } = await createGraph(3);
    const [a, b] = jobs as [JobWriter, JobWriter];
    const stream = watch(bench.openHub(), id, { minIntervalMs: 200 });
    const first = await nextOf(stream);
    expect([first.reset, names(first)]).toEqual([true, ['n0', 'n1', 'n2']]);
    bench.channel.publishChanges([await a.checkpoint(), await a.progress(10), await b.complete()]);
    bench.channel.publishChanges([await a.progress(20)]);
    const second = await nextOf(stream);
    expect([second.reset, names(second)]).toEqual([false, ['n0', 'n1']]);
    expect(second.nodes[0]?.job.progress?.current).toBe(20);
    expect(second.graph.summary).toMatchObject({ state: 'RUNNING', progress: { current: 1.2, total: 3 } });
    await stream.return?.();
  });

  test('starts with what is true now, whoever watched before, and tells these what it found', async () => {
    const { id, jobs } = await createGraph(2);
    const hub = bench.openHub();
    const early = watch(hub, id);
    await nextOf(early);
    // Its message is lost.
    await jobs[0]?.complete();
    const late = watch(hub, id);
    expect((await nextOf(late)).nodes[0]?.job.state).toBe('COMPLETED');
    const told = await nextOf(early);
    expect([told.reset, names(told)]).toEqual([false, ['n0']]);
    await early.return?.();
    await late.return?.();
  });

  test('after a gap all nodes come again, as a reset', async () => {
    const { id, jobs } = await createGraph(2);
    const stream = watch(bench.openHub(), id);
    await nextOf(stream);
    await jobs[0]?.complete();
    bench.channel.look();
    const told = await nextOf(stream);
    expect([told.reset, names(told), told.nodes[0]?.job.state]).toEqual([true, ['n0', 'n1'], 'COMPLETED']);
    bench.channel.setState('down');
    expect((await nextOf(stream)).reset).toBe(true);
    bench.channel.setState('live');
    expect((await nextOf(stream)).reset).toBe(true);
    await stream.return?.();
  });

  test('the end comes although its message was lost', async () => {
    const { id, jobs } = await createGraph(2);
    const stream = watch(bench.openHub({ safetyMs: 50 }), id);
    await nextOf(stream);
    for (const job of jobs) await job.complete();
    const rest = await within(10_000, collect(stream));
    expect(rest.at(-1)?.graph.summary).toMatchObject({ state: 'COMPLETED', version: 6 });
  });

  test('an unknown graph, and one of another tenant, is not found', async () => {
    const { id } = await createGraph(1);
    const hub = bench.openHub();
    await expect(watch(hub, newUuid()).next()).rejects.toThrow(NotFound);
    await expect(hub.graphProgress({ ...me, tenant: 'other' }, id).next()).rejects.toThrow(NotFound);
  });

  test('without the store it says so first, and waits for it later', async () => {
    const { id, jobs } = await createGraph(1);
    let away = true;
    const db: Executor = {
      query: (text, params) => (away ? Promise.reject(new Unavailable()) : bench.db.query(text, params)),
    };
    const hub = bench.openHub({ db });
    await expect(watch(hub, id).next()).rejects.toThrow(Unavailable);
    away = false;
    const stream = watch(hub, id);
    await nextOf(stream);
    away = true;
    bench.channel.publishChanges([(await jobs[0]?.complete()) as never]);
    const rest = collect(stream);
    // It has tried and failed.
    await eventually(() => expect(hub.stats().reads.rows).toBeGreaterThan(2));
    away = false;
    expect((await within(10_000, rest)).at(-1)?.graph.summary.state).toBe('COMPLETED');
  });

  test('whatever the channel does, every stream ends with every node as it is', async () => {
    const random = seededRandom();
    const { id, jobs } = await createGraph(20);
    bench.channel.faults = { lose: 0.3, repeat: 0.2, delay: 0.3, strip: 0.3 };
    const hub = bench.openHub({ safetyMs: 100 });
    const streams = Array.from({ length: 10 }, (_, i) => collect(watch(hub, id, { minIntervalMs: 10 + 10 * i })));
    for (const job of jobs) {
      for (let i = 0; i < 3; i++) if (random() < 0.5) bench.channel.publishChanges([await job.progress(i)]);
      bench.channel.publishChanges([await job.complete()]);
      if (random() < 0.1) bench.channel.look();
    }
    for (const messages of await within(20_000, Promise.all(streams))) {
      const seen = new Map<string, { version: number; state: string }>();
      for (const { nodes, reset } of messages) {
        if (reset) seen.clear();
        for (const { name, job } of nodes) {
          expect(job.version).toBeGreaterThan(seen.get(name)?.version ?? 0);
          seen.set(name, job);
        }
      }
      expect([...seen.values()].map((job) => job.state)).toEqual(Array(20).fill('COMPLETED'));
      expect(messages.at(-1)?.graph.summary.progress).toMatchObject({ current: 20, total: 20 });
    }
  });
});
