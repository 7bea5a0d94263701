import { describe, expect, test } from 'vitest';
import { LimitExceeded } from '../../src/core/errors.ts';
import { newUuid } from '../../src/core/ids.ts';
import type { LiveHub } from '../../src/engine/live/index.ts';
import { databases } from '../support/database.ts';
import { within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { liveBench, take, turn } from './live-bench.ts';

describe.each(databases())('the end of a stream on $name', ({ open }) => {
  const bench = liveBench(open);

  const kinds = {
    jobEvents: (hub: LiveHub, id: string, signal?: AbortSignal) => hub.jobEvents(me, id, { signal }),
    jobProgress: (hub: LiveHub, id: string, signal?: AbortSignal) => hub.jobProgress(me, id, { signal }),
    jobsChanged: (hub: LiveHub, _id: string, signal?: AbortSignal) => hub.jobsChanged(me, { signal }),
  };

  describe.each(['jobEvents', 'jobProgress', 'jobsChanged'] as const)('%s', (kind) => {
    const start = (hub: LiveHub, id: string, signal?: AbortSignal): AsyncIterator<unknown> =>
      kinds[kind](hub, id, signal);
    const idle = (hub: LiveHub) =>
      expect(hub.stats()).toMatchObject({ streams: 0, topics: 0, tenants: 0, subscriptions: 0 });

    test('registers nothing before the first next()', async () => {
      const hub = bench.openHub();
      const stream = start(hub, (await bench.createJob()).id);
      idle(hub);
      await stream.return?.();
      expect((await stream.next()).done).toBe(true);
      idle(hub);
    });

    test('return() while next() waits settles it and frees everything at once; twice is fine', async () => {
      const hub = bench.openHub();
      const job = await bench.createJob();
      const stream = start(hub, job.id);
      await take(stream, kind === 'jobEvents' ? 2 : 1);
      const waiting = [stream.next(), stream.next()];
      await turn(20);
      expect(hub.stats().streams).toBe(1);
      void stream.return?.();
      idle(hub);
      for (const next of waiting) expect(await within(1_000, next)).toEqual({ value: undefined, done: true });
      expect(await stream.return?.()).toEqual({ value: undefined, done: true });
      expect((await stream.next()).done).toBe(true);
    });

    test('return() while it starts', async () => {
      const hub = bench.openHub();
      const stream = start(hub, (await bench.createJob()).id);
      const next = stream.next();
      void stream.return?.();
      idle(hub);
      expect((await within(1_000, next)).done).toBe(true);
    });

    test('an abort signal ends it', async () => {
      const hub = bench.openHub();
      const job = await bench.createJob();
      const abort = new AbortController();
      const stream = start(hub, job.id, abort.signal);
      await take(stream, kind === 'jobEvents' ? 2 : 1);
      const next = stream.next();
      abort.abort();
      expect((await within(1_000, next)).done).toBe(true);
      idle(hub);
      expect((await start(hub, job.id, abort.signal).next()).done).toBe(true);
      idle(hub);
    });

    test('the hub ends it when it closes', async () => {
      const hub = bench.openHub();
      const job = await bench.createJob();
      const stream = start(hub, job.id);
      await take(stream, kind === 'jobEvents' ? 2 : 1);
      const next = stream.next();
      await hub.close();
      await hub.close();
      expect((await within(1_000, next)).done).toBe(true);
      expect((await start(hub, job.id).next()).done).toBe(true);
    });

    test('2,000 streams that come and go leave nothing', async () => {
      const hub = bench.openHub();
      const job = await bench.createJob();
      for (let i = 0; i < 2_000; i++) {
        const stream = start(hub, job.id);
        if (i % 3 > 0) void stream.next();
        if (i % 3 > 1) await turn();
        void stream.return?.();
      }
      idle(hub);
      expect(bench.channel.listeners).toBe(0);
    });
  });

  test('an error frees the stream; the iterator is over then', async () => {
    const hub = bench.openHub();
    const stream = hub.jobEvents(me, newUuid());
    const [first, second] = await Promise.allSettled([stream.next(), stream.next()]);
    expect(first.status).toBe('rejected');
    expect(second).toEqual({ status: 'fulfilled', value: { value: undefined, done: true } });
    expect((await stream.next()).done).toBe(true);
    expect(hub.stats()).toMatchObject({ streams: 0, topics: 0, subscriptions: 0 });
  });

  test('one tenant cannot take the streams of all', async () => {
    const hub = bench.openHub({ maxTenantStreams: 2 });
    const other = { ...me, tenant: 'other' };
    const kept = [hub.jobsChanged(me), hub.jobsChanged(me)];
    for (const stream of kept) await stream.next();
    await expect(hub.jobsChanged(me).next()).rejects.toThrow(LimitExceeded);
    expect((await hub.jobsChanged(other).next()).value).toMatchObject({ reset: true });
    // Refused ones are not counted, however often somebody tries.
    await kept[0]?.return?.();
    expect((await hub.jobsChanged(me).next()).value).toMatchObject({ reset: true });
  });

  test('streams are limited', async () => {
    const hub = bench.openHub({ maxStreams: 2 });
    const job = await bench.createJob();
    const kept = [hub.jobEvents(me, job.id), hub.jobProgress(me, job.id)];
    for (const stream of kept) await stream.next();
    await expect(hub.jobsChanged(me).next()).rejects.toThrow(LimitExceeded);
    await kept[0]?.return?.();
    const third = hub.jobsChanged(me);
    expect((await third.next()).value).toMatchObject({ reset: true });
  });
});
