import { describe, expect, test } from 'vitest';
import { Unavailable } from '../../src/core/errors.ts';
import type { Executor } from '../../src/db/types.ts';
import { databases } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { createFaultyChannel, seeded } from './faulty-channel.ts';
import type { JobWriter } from './job-writer.ts';
import { collect, liveBench, seqs, take, turn, upTo } from './live-bench.ts';

describe.each(databases())('many readers on $name', ({ open }) => {
  const bench = liveBench(open);

  test('a reader that falls behind the ring reads for itself, each fact once', async () => {
    const hub = bench.openHub({ ringSize: 8, pageSize: 5 });
    const job = await bench.createJob();
    const slow = hub.jobEvents(me, job.id);
    const fast = hub.jobEvents(me, job.id);
    await take(slow, 1);
    const all = collect(fast);
    for (let i = 0; i < 60; i++) bench.channel.publishChanges([await job.checkpoint()]);
    bench.channel.publishChanges([await job.complete()]);
    expect(seqs(await within(10_000, all))).toEqual(upTo(63));
    expect(seqs(await within(10_000, collect(slow)))).toEqual(upTo(63, 2));
  });

  test('a message that speaks of more than the store has does no harm', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const stream = hub.jobEvents(me, job.id);
    await take(stream, 2);
    const next = stream.next();
    const real = await job.checkpoint();
    for (const lastSeq of [4, 1_000_000]) {
      bench.channel.publishChanges([{ ...real, version: lastSeq, lastSeq, state: 'COMPLETED', events: undefined }]);
    }
    expect((await within(10_000, next)).value.seq).toBe(3);
    const reads = await eventually(async () => {
      const before = hub.stats().reads;
      await turn(50);
      expect(hub.stats().reads).toEqual(before);
      return before;
    });
    expect(reads.rows + reads.events).toBeLessThan(12);
    bench.channel.publishChanges([await job.complete()]);
    expect(seqs(await within(10_000, collect(stream)))).toEqual([4]);
  });

  test('many streams of one job share the reads: 300 streams, 50 events', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const all = Array.from({ length: 300 }, () => collect(hub.jobEvents(me, job.id)));
    await eventually(() => expect(hub.stats().streams).toBe(300));
    expect(hub.stats()).toMatchObject({ topics: 1, subscriptions: 1 });
    for (let i = 0; i < 24; i++) bench.channel.publishChanges([await job.checkpoint()]);
    // The other half is too large for the channel: each has to be read.
    for (let i = 0; i < 23; i++) {
      bench.channel.publishChanges([{ ...(await job.checkpoint()), events: undefined }]);
      await turn();
    }
    bench.channel.publishChanges([await job.complete()]);
    for (const events of await within(20_000, Promise.all(all))) expect(seqs(events)).toEqual(upTo(50));
    const { rows, events, heads } = hub.stats().reads;
    expect(rows + events + heads).toBeLessThanOrEqual(50);
    expect(rows + events).toBeGreaterThan(5);
  });

  test('streams that come one after another are served from the ring', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    for (let i = 0; i < 98; i++) await job.checkpoint();
    const keep = hub.jobEvents(me, job.id);
    await take(keep, 100);
    const { events } = hub.stats().reads;
    for (let i = 0; i < 20; i++) {
      const stream = hub.jobEvents(me, job.id, { after: i });
      expect(seqs(await take(stream, 100 - i))).toEqual(upTo(100, i + 1));
      await stream.return?.();
    }
    expect(hub.stats().reads.events).toBe(events);
  });

  test('a replay from memory leaves the event loop its turns', async () => {
    const hub = bench.openHub({ ringSize: 2_000 });
    const job = await bench.createJob();
    await job.facts(Array.from({ length: 1_200 }, () => 'CheckpointSaved' as const));
    await take(hub.jobEvents(me, job.id), 1_202);
    const warm = hub.jobEvents(me, job.id);
    await take(warm, 1_202);
    let turns = 0;
    const count = setInterval(() => turns++, 0);
    const spin = () => {
      turns++;
      immediate = setImmediate(spin);
    };
    let immediate = setImmediate(spin);
    await take(hub.jobEvents(me, job.id), 1_200);
    clearInterval(count);
    clearImmediate(immediate);
    expect(turns).toBeGreaterThanOrEqual(20);
  });

  test.each(Array.from({ length: 4 }, (_, i) => i))('each fact once and in order under faults (%i)', async () => {
    const seed = Math.floor(Math.random() * 1e9);
    const random = seeded(seed);
    bench.channel = createFaultyChannel(random);
    bench.channel.faults = { lose: 0.2, repeat: 0.3, delay: 0.5, strip: 0.3 };
    const hub = bench.openHub({
      pollMs: 20,
      safetyMs: 100,
      ringSize: 1 + Math.floor(random() * 20),
      pageSize: 1 + Math.floor(random() * 10),
    });
    try {
      const jobs = await Promise.all(Array.from({ length: 4 }, bench.createJob));
      const readers: Promise<void>[] = [];
      const read = async (job: JobWriter, after: number) => {
        let cursor = after;
        const gauges: number[] = [];
        const progress = hub.jobProgress(me, job.id);
        const watching = (async () => {
          for await (const row of progress) gauges.push(row.version);
        })();
        // Clients come and go and resume behind what they have seen.
        for (let done = false; !done; ) {
          const stream = hub.jobEvents(me, job.id, { after: cursor });
          for (let n = 1 + Math.floor(random() * 30); n > 0 && !done; n--) {
            const next = await stream.next();
            if (next.done) {
              done = true;
              break;
            }
            expect(next.value.seq).toBe(cursor + 1);
            cursor = next.value.seq;
            if (random() < 0.1) await turn(random() * 10);
          }
          await stream.return?.();
        }
        expect(cursor).toBe(62);
        await watching;
        expect(gauges).toEqual([...gauges].sort((a, b) => a - b));
        expect(new Set(gauges).size).toBe(gauges.length);
      };
      for (const job of jobs) {
        for (let i = 0; i < 8; i++) readers.push(read(job, Math.floor(random() * 3)));
      }
      const write = async (job: JobWriter) => {
        for (let seq = 2; seq < 61; seq++) {
          bench.channel.publishChanges([await job.checkpoint()]);
          if (random() < 0.3) bench.channel.publishChanges([await job.progress(seq)]);
          if (random() < 0.05) bench.channel.setState(bench.channel.state === 'live' ? 'down' : 'live');
          if (random() < 0.2) await turn(random() * 5);
        }
        bench.channel.publishChanges([await job.complete()]);
      };
      await Promise.all(jobs.map(write));
      await within(20_000, Promise.all(readers));
    } catch (error) {
      throw new Error(`with seed ${seed}`, { cause: error });
    }
  });

  test('the store is away: at the start Unavailable, later the stream waits for it', async () => {
    const job = await bench.createJob();
    let away = true;
    const fragile: Executor = {
      query: (text, params) => (away ? Promise.reject(new Unavailable()) : bench.db.query(text, params)),
    };
    const hub = bench.openHub({ db: fragile, pollMs: 20, pageSize: 2 });
    await expect(hub.jobEvents(me, job.id).next()).rejects.toThrow(Unavailable);
    await expect(hub.jobProgress(me, job.id).next()).rejects.toThrow(Unavailable);
    expect(hub.stats()).toMatchObject({ streams: 0, topics: 0 });
    away = false;
    const events = hub.jobEvents(me, job.id);
    const progress = hub.jobProgress(me, job.id);
    const lists = hub.jobsChanged(me, { minIntervalMs: 10 });
    await take(events, 1);
    await progress.next();
    await lists.next();
    away = true;
    const all = [collect(events), collect(progress), take(lists, 1)] as const;
    for (let i = 0; i < 5; i++) bench.channel.publishChanges([{ ...(await job.checkpoint()), events: undefined }]);
    bench.channel.publishChanges([{ ...(await job.complete()), events: undefined }]);
    await turn(100);
    away = false;
    const [facts, rows, [message]] = await within(20_000, Promise.all(all));
    expect(seqs(facts)).toEqual(upTo(8, 2));
    expect(rows.at(-1)?.state).toBe('COMPLETED');
    expect(message).toEqual({ jobs: [], reset: true });
    await lists.return?.();
  });

  test('with the channel down all followed jobs are polled with one statement', async () => {
    bench.channel.setState('down');
    const hub = bench.openHub({ pollMs: 50 });
    const jobs = await Promise.all(Array.from({ length: 40 }, bench.createJob));
    const all = jobs.map((job) => collect(hub.jobEvents(me, job.id)));
    await eventually(() => expect(hub.stats().topics).toBe(40));
    const before = hub.stats().reads.heads;
    await turn(300);
    expect(hub.stats().reads.heads - before).toBeLessThanOrEqual(7);
    for (const job of jobs) await job.complete();
    for (const events of await within(10_000, Promise.all(all))) expect(seqs(events)).toEqual([1, 2, 3]);
  });

  test('with the channel live a lost message is found by the safety poll, or when it comes back', async () => {
    const hub = bench.openHub({ safetyMs: 100 });
    const job = await bench.createJob();
    const stream = hub.jobEvents(me, job.id);
    await take(stream, 2);
    await job.checkpoint();
    expect(seqs(await take(stream, 1))).toEqual([3]);
    const slow = bench.openHub();
    const other = slow.jobEvents(me, job.id);
    await take(other, 3);
    bench.channel.setState('down');
    await job.complete();
    bench.channel.setState('live');
    expect(seqs(await within(5_000, collect(other)))).toEqual([4]);
    await stream.return?.();
  });
});
