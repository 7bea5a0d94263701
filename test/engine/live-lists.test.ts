import { describe, expect, test } from 'vitest';
import type { JobsChanged, LiveHub } from '../../src/engine/live/index.ts';
import { databases } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { JobWriter } from './job-writer.ts';
import { liveBench, turn } from './live-bench.ts';

describe.each(databases())('jobsChanged on $name', ({ open }) => {
  const bench = liveBench(open);

  const opened = async (hub: LiveHub, options?: Parameters<LiveHub['jobsChanged']>[1]) => {
    const stream = hub.jobsChanged(me, { minIntervalMs: 20, ...options });
    expect(await within(10_000, stream.next())).toEqual({ value: { jobs: [], reset: true }, done: false });
    return stream;
  };
  const nextOf = async (stream: AsyncIterator<JobsChanged>) => {
    const next = await within(10_000, stream.next(), 'a message');
    if (next.done) throw new Error('the stream has ended');
    return next.value;
  };

  test('delivers a job that matched before or matches after, once per message, as it is now', async () => {
    const hub = bench.openHub();
    const [a, b, waiting] = [
      await bench.createJob(),
      await bench.createJob(),
      await JobWriter.create(bench.writeDb, 'QUEUED'),
    ];
    const stream = await opened(hub, { minIntervalMs: 100, filter: { state: (s) => s === 'RUNNING' } });
    bench.channel.publishChanges([await a.checkpoint()]);
    bench.channel.publishChanges([await a.checkpoint()]);
    bench.channel.publishChanges([await b.complete()]);
    bench.channel.publishChanges([await waiting.facts(['JobCanceled'], 'CANCELED')]);
    const { jobs, reset } = await nextOf(stream);
    expect(reset).toBe(false);
    expect(jobs.map((j) => [j.id, j.state, j.lastSeq]).sort()).toEqual(
      [
        [a.id, 'RUNNING', 4],
        [b.id, 'COMPLETED', 3],
      ].sort(),
    );
    // It left the list and is of no interest any more.
    bench.channel.publishChanges([{ ...(await b.facts(['JobQueued'], 'QUEUED')), from: 'COMPLETED' }]);
    bench.channel.publishChanges([await waiting.facts(['JobQueued', 'AttemptStarted'], 'RUNNING')]);
    expect((await nextOf(stream)).jobs.map((j) => j.id)).toEqual([waiting.id]);
    await stream.return?.();
  });

  test('told to look, a list is told to read again', async () => {
    const hub = bench.openHub();
    const stream = await opened(hub, { minIntervalMs: 10 });
    bench.channel.look();
    expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
    await stream.return?.();
  });

  test('judges what never changes without a read, and the rest on the row', async () => {
    const hub = bench.openHub();
    const [a, b] = [await bench.createJob(), await bench.createJob()];
    const stream = await opened(hub, { filter: { change: (c) => c.jobId === a.id, row: (r) => r.version > 3 } });
    const next = nextOf(stream);
    bench.channel.publishChanges([await b.checkpoint()]);
    await turn(50);
    expect(hub.stats().reads.rows).toBe(0);
    bench.channel.publishChanges([await a.checkpoint()]);
    await eventually(() => expect(hub.stats().reads.rows).toBe(1));
    bench.channel.publishChanges([await a.checkpoint()]);
    expect((await next).jobs).toMatchObject([{ id: a.id, version: 4 }]);
    await stream.return?.();
  });

  test('at most one message per interval', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const stream = hub.jobsChanged(me, { minIntervalMs: 100 });
    const times: number[] = [];
    const reading = (async () => {
      for await (const _ of stream) times.push(performance.now());
    })();
    for (let i = 0; i < 40; i++) {
      bench.channel.publishChanges([await job.checkpoint()]);
      await turn(10);
    }
    await stream.return?.();
    await reading;
    expect(times.length).toBeGreaterThan(2);
    for (let i = 1; i < times.length; i++) expect((times[i] ?? 0) - (times[i - 1] ?? 0)).toBeGreaterThan(90);
  });

  test('lists share the rows that they read', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const streams = await Promise.all(Array.from({ length: 50 }, () => opened(hub)));
    expect(hub.stats()).toMatchObject({ streams: 50, tenants: 1, subscriptions: 1 });
    bench.channel.publishChanges([await job.checkpoint()]);
    for (const message of await Promise.all(streams.map(nextOf))) expect(message.jobs).toHaveLength(1);
    expect(hub.stats().reads.rows).toBeLessThanOrEqual(2);
    await Promise.all(streams.map((s) => s.return?.()));
  });

  test('lists with the same filter gather, judge and send as one; those with another filter or pace do not', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    let judged = 0;
    const filter = {
      row: () => {
        judged++;
        return true;
      },
    };
    const same = await Promise.all([1, 2, 3].map(() => opened(hub, { filter, filterKey: 'all' })));
    const others = [
      await opened(hub, { filterKey: 'other' }),
      await opened(hub, { filterKey: 'all', minIntervalMs: 21 }),
    ];
    const change = await job.checkpoint();
    bench.channel.publishChanges([change]);
    const [first, ...rest] = await Promise.all(same.map(nextOf));
    expect(first?.jobs).toMatchObject([{ id: job.id, version: change.version }]);
    for (const message of rest) expect(message).toBe(first);
    for (const stream of others) {
      const message = await nextOf(stream);
      expect(message).toEqual(first);
      expect(message).not.toBe(first);
    }
    expect(judged).toBe(1);
    await Promise.all([...same, ...others].map((s) => s.return?.()));
    expect(hub.stats()).toMatchObject({ streams: 0, tenants: 0, subscriptions: 0 });
  });

  test('who joins a list is told to read it first, and then hears what the others hear', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const early = await opened(hub, { filterKey: 'all' });
    bench.channel.publishChanges([await job.checkpoint()]);
    expect((await nextOf(early)).jobs).toHaveLength(1);
    const late = await opened(hub, { filterKey: 'all' });
    bench.channel.publishChanges([await job.checkpoint()]);
    const message = await nextOf(early);
    expect(message.jobs).toMatchObject([{ id: job.id, version: 4 }]);
    expect(await nextOf(late)).toEqual(message);
    // The last one is told as before when others have left.
    await early.return?.();
    bench.channel.publishChanges([await job.complete()]);
    expect((await nextOf(late)).jobs).toMatchObject([{ state: 'COMPLETED' }]);
    await late.return?.();
  });

  test('what comes while a stream is not asked becomes one message, each job once and newest; too much a reset', async () => {
    const hub = bench.openHub({ maxChanged: 3 });
    const jobs = await Promise.all(Array.from({ length: 4 }, bench.createJob));
    const [a, b] = jobs as [JobWriter, JobWriter];
    const [asked, slow, other] = [
      await opened(hub, { filterKey: 'all' }),
      await opened(hub, { filterKey: 'all' }),
      await opened(hub, { filterKey: 'all' }),
    ];
    for (const job of [a, a, b]) {
      bench.channel.publishChanges([await job.checkpoint()]);
      await nextOf(asked);
    }
    const merged = await nextOf(slow);
    // Merged once for all that were not asked.
    expect(await nextOf(other)).toBe(merged);
    expect(merged.jobs.map((j) => [j.id, j.version]).sort()).toEqual(
      [
        [a.id, 4],
        [b.id, 3],
      ].sort(),
    );
    for (const job of jobs) {
      bench.channel.publishChanges([await job.checkpoint()]);
      await nextOf(asked);
    }
    expect(await nextOf(slow)).toEqual({ jobs: [], reset: true });
    await Promise.all([asked, slow, other].map((stream) => stream.return?.()));
  });

  test('a job is sent as it is when it is sent, not as it was when it was first heard of', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const streams = [
      await opened(hub, { minIntervalMs: 200, filterKey: 'all' }),
      await opened(hub, { minIntervalMs: 200, filterKey: 'all' }),
    ];
    // Both ask while an interval goes by; in the first there is something to tell from its beginning on.
    for (let round = 0; round < 5; round++) {
      let told = false;
      const next = Promise.all(streams.map(nextOf)).then((messages) => {
        told = true;
        return messages;
      });
      let newest = 0;
      while (!told) {
        const change = await job.checkpoint();
        if (!told) newest = change.version;
        bench.channel.publishChanges([change]);
        await turn(10);
      }
      // What was written while the message was on its way may be in it or not.
      for (const { jobs } of await next) expect(jobs[0]?.version).toBeGreaterThanOrEqual(newest - 6);
    }
    await Promise.all(streams.map((s) => s.return?.()));
  });

  test('a broken filter ends all streams of its list, and none that comes later', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    let broken = true;
    const filter = {
      row: () => {
        if (broken) throw new Error('a broken filter');
        return true;
      },
    };
    const streams = await Promise.all([1, 2].map(() => opened(hub, { filter, filterKey: 'all' })));
    const nexts = streams.map((stream) => stream.next());
    bench.channel.publishChanges([await job.checkpoint()]);
    for (const next of nexts) await expect(next).rejects.toThrow('a broken filter');
    broken = false;
    const later = await opened(hub, { filter, filterKey: 'all' });
    bench.channel.publishChanges([await job.checkpoint()]);
    expect((await nextOf(later)).jobs).toHaveLength(1);
    await later.return?.();
  });

  test('more changes than are kept become a reset', async () => {
    const hub = bench.openHub({ maxChanged: 3 });
    const jobs = await Promise.all(Array.from({ length: 5 }, bench.createJob));
    const stream = await opened(hub);
    for (const job of jobs) bench.channel.publishChanges([await job.checkpoint()]);
    await turn(50);
    expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
    bench.channel.publishChanges([await (jobs[0] as JobWriter).checkpoint()]);
    expect((await nextOf(stream)).jobs).toHaveLength(1);
    await stream.return?.();
  });

  test('a job that is gone becomes a reset', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const stream = await opened(hub);
    const change = await job.complete();
    await job.remove();
    bench.channel.publishChanges([change]);
    expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
    await stream.return?.();
  });

  test('a message that comes again late brings no job back that is gone', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const stream = await opened(hub);
    const change = await job.complete();
    bench.channel.publishChanges([change]);
    expect((await nextOf(stream)).jobs).toMatchObject([{ id: job.id, state: 'COMPLETED' }]);
    await job.remove();
    bench.channel.publishChanges([change]);
    expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
    await stream.return?.();
  });

  test('resets when the channel goes and comes, and while it is down when something moved', async () => {
    const hub = bench.openHub({ pollMs: 20 });
    const job = await JobWriter.create(bench.writeDb, 'QUEUED');
    const stream = await opened(hub);
    bench.channel.setState('down');
    expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
    const next = nextOf(stream);
    let told = false;
    void next.then(() => {
      told = true;
    });
    await turn(200);
    expect(told).toBe(false);
    await job.facts(['AttemptStarted'], 'RUNNING');
    expect(await next).toEqual({ jobs: [], reset: true });
    bench.channel.setState('live');
    expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
    bench.channel.publishChanges([await job.complete()]);
    expect((await nextOf(stream)).jobs).toMatchObject([{ id: job.id, state: 'COMPLETED' }]);
    await stream.return?.();
  });

  test('a change whose message was lost while all was live becomes a reset', async () => {
    const hub = bench.openHub({ safetyMs: 30 });
    const job = await bench.createJob();
    const stream = await opened(hub);
    await eventually(() => expect(hub.stats().reads.pulses).toBeGreaterThan(1));
    await job.complete();
    expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
    await stream.return?.();
  });

  test('other tenants are not heard; a filter that throws ends its own stream only', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const other = hub.jobsChanged({ ...me, tenant: 'other' }, { minIntervalMs: 1 });
    await other.next();
    const silent = other.next();
    const stream = await opened(hub);
    const broken = await opened(hub, {
      filter: {
        change() {
          throw new Error('a broken filter');
        },
      },
    });
    bench.channel.publishChanges([await job.checkpoint()]);
    await expect(broken.next()).rejects.toThrow('a broken filter');
    expect((await nextOf(stream)).jobs).toHaveLength(1);
    await other.return?.();
    expect((await silent).done).toBe(true);
    await stream.return?.();
  });
});
