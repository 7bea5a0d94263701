import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CursorInvalid, LimitExceeded, NotFound, Unavailable } from '../../src/core/errors.ts';
import type { JobEvent } from '../../src/core/event.ts';
import { newUuid, publicId } from '../../src/core/ids.ts';
import { silentLogger } from '../../src/core/log.ts';
import type { Executor } from '../../src/db/types.ts';
import { createLiveHub, type JobsChanged, type LiveHub, type LiveHubOptions } from '../../src/engine/live/index.ts';
import { databases } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { createFaultyChannel, type FaultyChannel, seeded } from './faulty-channel.ts';
import { JobWriter } from './job-writer.ts';

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const values: T[] = [];
  for await (const value of stream) values.push(value);
  return values;
}

async function take<T>(stream: AsyncIterator<T>, count: number): Promise<T[]> {
  const values: T[] = [];
  while (values.length < count) {
    const next = await within(10_000, stream.next(), `value ${values.length + 1} of ${count}`);
    if (next.done) break;
    values.push(next.value);
  }
  return values;
}

const seqs = (events: readonly JobEvent[]) => events.map((e) => e.seq);
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
const turn = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(databases())('live streams on $name', ({ open }) => {
  let db: Executor;
  let writeDb: Executor;
  let channel: FaultyChannel;
  let hubs: LiveHub[];

  beforeAll(async () => {
    const database = await open();
    db = database.read;
    writeDb = database.work;
  });
  beforeEach(async () => {
    await writeDb.query('truncate waymark.count_deltas');
    channel = createFaultyChannel();
    hubs = [];
  });
  afterEach(async () => {
    for (const hub of hubs) {
      await hub.close();
      expect(hub.stats()).toMatchObject({ streams: 0, topics: 0, tenants: 0, subscriptions: 0 });
    }
    expect(channel.listeners).toBe(0);
  });

  function openHub(options: Partial<LiveHubOptions> = {}): LiveHub {
    // Without polls, unless a test is about them: what arrives came by the channel and the reads that it set off.
    const hub = createLiveHub({ db, channel, log: silentLogger, pollMs: 60_000, safetyMs: 60_000, ...options });
    hubs.push(hub);
    return hub;
  }
  const createJob = () => JobWriter.create(writeDb);

  describe('jobEvents', () => {
    test('replays, goes live, and ends after the terminal event', async () => {
      const hub = openHub();
      const job = await createJob();
      await job.checkpoint();
      const stream = hub.jobEvents(me, job.id);
      expect(seqs(await take(stream, 3))).toEqual([1, 2, 3]);
      channel.publishChanges([await job.checkpoint()]);
      channel.publishChanges([await job.facts(['CheckpointSaved', 'ArtifactStored'])]);
      channel.publishChanges([await job.complete()]);
      const rest = await within(10_000, collect(stream));
      expect(rest.map((e) => [e.seq, e.type])).toEqual([
        [4, 'CheckpointSaved'],
        [5, 'CheckpointSaved'],
        [6, 'ArtifactStored'],
        [7, 'JobCompleted'],
      ]);
      expect(hub.stats()).toMatchObject({ streams: 0, topics: 0, subscriptions: 0 });
    });

    test('what the channel carries and what the store has are the same', async () => {
      const hub = openHub();
      const job = await createJob();
      const live = hub.jobEvents(me, job.id, { after: 2 });
      const first = live.next();
      await eventually(() => expect(hub.stats().reads.rows).toBe(1));
      await turn(20);
      channel.publishChanges([await job.checkpoint()]);
      const fromChannel = await first;
      const [fromStore] = await take(openHub().jobEvents(me, job.id, { after: 2 }), 1);
      expect(fromChannel.value).toEqual(fromStore);
      expect(hub.stats().reads.events).toBe(0);
      await live.return?.();
    });

    test('a gap is filled from the store; duplicates and older messages are dropped', async () => {
      const hub = openHub();
      const job = await createJob();
      const stream = hub.jobEvents(me, job.id);
      await take(stream, 2);
      const lost = await job.checkpoint();
      const second = await job.checkpoint();
      channel.publishChanges([second]);
      channel.publishChanges([second]);
      expect(seqs(await take(stream, 2))).toEqual([3, 4]);
      channel.publishChanges([lost]);
      const stripped = { ...(await job.checkpoint()), events: undefined };
      channel.publishChanges([lost, stripped]);
      expect(seqs(await take(stream, 1))).toEqual([5]);
      channel.publishChanges([await job.complete(), lost, second]);
      expect(seqs(await within(10_000, collect(stream)))).toEqual([6]);
    });

    test("goes on past an earlier run's terminal event, to the end of the newest run", async () => {
      const hub = openHub();
      const job = await createJob();
      await job.fail();
      await job.retry();
      const stream = hub.jobEvents(me, job.id);
      expect(seqs(await take(stream, 6))).toEqual(upTo(6));
      channel.publishChanges([await job.complete()]);
      expect(seqs(await within(10_000, collect(stream)))).toEqual([7]);

      const replay = await within(10_000, collect(hub.jobEvents(me, job.id)));
      expect(replay.map((e) => e.type)).toEqual([
        ...['JobSubmitted', 'AttemptStarted', 'AttemptEnded', 'JobFailed'],
        ...['JobQueued', 'AttemptStarted', 'JobCompleted'],
      ]);
      // A page that ends with the earlier terminal event is not the end either.
      const paged = openHub({ pageSize: 4, ringSize: 1 });
      expect(seqs(await within(10_000, collect(paged.jobEvents(me, job.id))))).toEqual(upTo(7));
    });

    test('`after` the terminal event completes at once; after an earlier one it goes on', async () => {
      const hub = openHub();
      const job = await createJob();
      await job.fail();
      expect(await within(10_000, collect(hub.jobEvents(me, job.id, { after: 4 })))).toEqual([]);
      await job.retry();
      const open = hub.jobEvents(me, job.id, { after: 4 });
      expect(seqs(await take(open, 2))).toEqual([5, 6]);
      channel.publishChanges([await job.complete()]);
      expect(seqs(await within(10_000, collect(open)))).toEqual([7]);
      expect(await within(10_000, collect(hub.jobEvents(me, job.id, { after: 7 })))).toEqual([]);
    });

    test('untilTerminal: false stays open over runs', async () => {
      const hub = openHub();
      const job = await createJob();
      await job.fail();
      const stream = hub.jobEvents(me, job.id, { after: 2, untilTerminal: false });
      expect(seqs(await take(stream, 2))).toEqual([3, 4]);
      const next = stream.next();
      channel.publishChanges([await job.retry()]);
      channel.publishChanges([await job.complete()]);
      expect((await within(10_000, next)).value.seq).toBe(5);
      expect(seqs(await take(stream, 2))).toEqual([6, 7]);
      expect(hub.stats().streams).toBe(1);
      await stream.return?.();
    });

    test('`after` beyond the newest event is CursorInvalid, also when the store is rewound in mid-stream', async () => {
      const hub = openHub({ safetyMs: 30 });
      const job = await createJob();
      await expect(hub.jobEvents(me, job.id, { after: 3 }).next()).rejects.toThrow(CursorInvalid);
      await job.facts(['CheckpointSaved', 'CheckpointSaved', 'CheckpointSaved']);
      const stream = hub.jobEvents(me, job.id);
      await take(stream, 5);
      const next = stream.next();
      next.catch(() => {});
      await job.rewindTo(2);
      await expect(within(10_000, next)).rejects.toThrow(CursorInvalid);
      expect(await stream.next()).toEqual({ value: undefined, done: true });
      expect(seqs(await take(hub.jobEvents(me, job.id), 2))).toEqual([1, 2]);
    });

    test('unknown and foreign jobs are NotFound, with the public id', async () => {
      const hub = openHub();
      const job = await createJob();
      const unknown = newUuid();
      await expect(hub.jobEvents(me, unknown).next()).rejects.toMatchObject({
        name: 'NotFound',
        id: publicId('Job', unknown),
      });
      const other = { ...me, tenant: 'other' };
      await expect(hub.jobEvents(other, job.id).next()).rejects.toThrow(NotFound);
      await expect(hub.jobProgress(other, job.id).next()).rejects.toThrow(NotFound);
      // A foreign follower does not spoil the topic of the owner, nor the other way round.
      const [mine, foreign] = await Promise.allSettled([
        take(hub.jobEvents(me, job.id), 2),
        hub.jobEvents(other, job.id).next(),
      ]);
      expect(mine.status).toBe('fulfilled');
      expect(foreign.status).toBe('rejected');
    });

    test.each([
      { how: 'removed', keepRow: false },
      { how: 'pruned to its bare row', keepRow: true },
    ])('a job that is $how in mid-stream is NotFound', async ({ keepRow }) => {
      const hub = openHub({ safetyMs: 30 });
      const job = await createJob();
      const stream = hub.jobEvents(me, job.id, { untilTerminal: false });
      await take(stream, 2);
      await job.complete();
      await take(stream, 1);
      const next = stream.next();
      next.catch(() => {});
      await job.remove(keepRow);
      await expect(within(10_000, next)).rejects.toThrow(NotFound);
      await expect(hub.jobEvents(me, job.id).next()).rejects.toThrow(NotFound);
      if (keepRow) expect(await collect(hub.jobEvents(me, job.id, { after: 3 }))).toEqual([]);
    });

    test('a job that is removed while it is replayed is NotFound', async () => {
      const hub = openHub({ pageSize: 2, ringSize: 2 });
      const job = await createJob();
      await job.facts(['CheckpointSaved', 'CheckpointSaved', 'CheckpointSaved', 'CheckpointSaved']);
      const stream = hub.jobEvents(me, job.id);
      await take(stream, 2);
      await job.remove();
      await expect(within(10_000, stream.next())).rejects.toThrow(NotFound);
    });

    test('a reader that falls behind the ring reads for itself, each fact once', async () => {
      const hub = openHub({ ringSize: 8, pageSize: 5 });
      const job = await createJob();
      const slow = hub.jobEvents(me, job.id);
      const fast = hub.jobEvents(me, job.id);
      await take(slow, 1);
      const all = collect(fast);
      for (let i = 0; i < 60; i++) channel.publishChanges([await job.checkpoint()]);
      channel.publishChanges([await job.complete()]);
      expect(seqs(await within(10_000, all))).toEqual(upTo(63));
      expect(seqs(await within(10_000, collect(slow)))).toEqual(upTo(63, 2));
    });

    test('a message that speaks of more than the store has does no harm', async () => {
      const hub = openHub();
      const job = await createJob();
      const stream = hub.jobEvents(me, job.id);
      await take(stream, 2);
      const next = stream.next();
      const real = await job.checkpoint();
      for (const lastSeq of [4, 1_000_000]) {
        channel.publishChanges([{ ...real, version: lastSeq, lastSeq, state: 'COMPLETED', events: undefined }]);
      }
      expect((await within(10_000, next)).value.seq).toBe(3);
      const reads = await eventually(async () => {
        const before = hub.stats().reads;
        await turn(50);
        expect(hub.stats().reads).toEqual(before);
        return before;
      });
      expect(reads.rows + reads.events).toBeLessThan(12);
      channel.publishChanges([await job.complete()]);
      expect(seqs(await within(10_000, collect(stream)))).toEqual([4]);
    });

    test('many streams of one job share the reads: 300 streams, 50 events', async () => {
      const hub = openHub();
      const job = await createJob();
      const all = Array.from({ length: 300 }, () => collect(hub.jobEvents(me, job.id)));
      await eventually(() => expect(hub.stats().streams).toBe(300));
      expect(hub.stats()).toMatchObject({ topics: 1, subscriptions: 1 });
      for (let i = 0; i < 24; i++) channel.publishChanges([await job.checkpoint()]);
      // The other half is too large for the channel: each has to be read.
      for (let i = 0; i < 23; i++) {
        channel.publishChanges([{ ...(await job.checkpoint()), events: undefined }]);
        await turn();
      }
      channel.publishChanges([await job.complete()]);
      for (const events of await within(20_000, Promise.all(all))) expect(seqs(events)).toEqual(upTo(50));
      const { rows, events, heads } = hub.stats().reads;
      expect(rows + events + heads).toBeLessThanOrEqual(50);
      expect(rows + events).toBeGreaterThan(5);
    });

    test('streams that come one after another are served from the ring', async () => {
      const hub = openHub();
      const job = await createJob();
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
      const hub = openHub({ ringSize: 2_000 });
      const job = await createJob();
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
  });

  test.each(Array.from({ length: 4 }, (_, i) => i))('each fact once and in order under faults (%i)', async () => {
    const seed = Math.floor(Math.random() * 1e9);
    const random = seeded(seed);
    channel = createFaultyChannel(random);
    channel.faults = { lose: 0.2, repeat: 0.3, delay: 0.5, strip: 0.3 };
    const hub = openHub({
      pollMs: 20,
      safetyMs: 100,
      ringSize: 1 + Math.floor(random() * 20),
      pageSize: 1 + Math.floor(random() * 10),
    });
    try {
      const jobs = await Promise.all(Array.from({ length: 4 }, createJob));
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
          channel.publishChanges([await job.checkpoint()]);
          if (random() < 0.3) channel.publishChanges([await job.progress(seq)]);
          if (random() < 0.05) channel.setState(channel.state === 'live' ? 'down' : 'live');
          if (random() < 0.2) await turn(random() * 5);
        }
        channel.publishChanges([await job.complete()]);
      };
      await Promise.all(jobs.map(write));
      await within(20_000, Promise.all(readers));
    } catch (error) {
      throw new Error(`with seed ${seed}`, { cause: error });
    }
  });

  describe('jobProgress', () => {
    test('gives the job at once, then the newest; never an older one; the terminal one last', async () => {
      const hub = openHub();
      const job = await createJob();
      const stream = hub.jobProgress(me, job.id);
      const first = await stream.next();
      expect(first.value).toMatchObject({ id: job.id, state: 'RUNNING', version: 2, progress: null });
      const old = await job.progress(1);
      for (let i = 2; i <= 20; i++) channel.publishChanges([await job.progress(i)]);
      channel.publishChanges([old]);
      await eventually(async () => {
        const next = await within(1_000, stream.next());
        expect(next.value?.progress?.current).toBe(20);
      });
      channel.publishChanges([await job.complete()]);
      const rest = await within(10_000, collect(stream));
      expect(rest.at(-1)).toMatchObject({ state: 'COMPLETED', version: 23 });
      expect(await collect(hub.jobProgress(me, job.id))).toHaveLength(1);
    });

    test('a slow reader skips what it has missed', async () => {
      const hub = openHub();
      const job = await createJob();
      const stream = hub.jobProgress(me, job.id);
      await stream.next();
      for (let i = 1; i <= 30; i++) {
        channel.publishChanges([await job.progress(i)]);
        await turn();
      }
      await eventually(() => expect(hub.stats().reads.rows).toBeGreaterThan(1));
      await turn(50);
      expect((await stream.next()).value.progress).toMatchObject({ current: 30 });
      await stream.return?.();
    });

    test('300 streams share one read per change', async () => {
      const hub = openHub();
      const job = await createJob();
      const all = Array.from({ length: 300 }, () => collect(hub.jobProgress(me, job.id)));
      await eventually(() => expect(hub.stats().streams).toBe(300));
      for (let i = 0; i < 49; i++) {
        channel.publishChanges([await job.progress(i)]);
        await turn();
      }
      channel.publishChanges([await job.complete()]);
      for (const rows of await within(20_000, Promise.all(all))) expect(rows.at(-1)?.state).toBe('COMPLETED');
      expect(hub.stats().reads.rows).toBeLessThanOrEqual(52);
    });

    test('untilTerminal: false stays open; removal is NotFound; a bare row is given and is the end', async () => {
      const hub = openHub({ safetyMs: 30 });
      const job = await createJob();
      await job.fail();
      const stream = hub.jobProgress(me, job.id, { untilTerminal: false });
      expect((await stream.next()).value.state).toBe('FAILED');
      const next = stream.next();
      await job.retry();
      expect((await within(10_000, next)).value).toMatchObject({ state: 'RUNNING', run: 2 });
      const gone = collect(stream);
      gone.catch(() => {});
      await job.remove();
      await expect(within(10_000, gone)).rejects.toThrow(NotFound);

      const keyed = await createJob();
      await keyed.complete();
      await keyed.remove(true);
      const bare = await within(10_000, collect(hub.jobProgress(me, keyed.id, { untilTerminal: false })));
      expect(bare).toMatchObject([{ state: 'COMPLETED', prunedAt: expect.any(String) }]);
    });
  });

  describe('jobsChanged', () => {
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
      const hub = openHub();
      const [a, b, waiting] = [await createJob(), await createJob(), await JobWriter.create(writeDb, 'QUEUED')];
      const stream = await opened(hub, { minIntervalMs: 100, filter: { state: (s) => s === 'RUNNING' } });
      channel.publishChanges([await a.checkpoint()]);
      channel.publishChanges([await a.checkpoint()]);
      channel.publishChanges([await b.complete()]);
      channel.publishChanges([await waiting.facts(['JobCanceled'], 'CANCELED')]);
      const { jobs, reset } = await nextOf(stream);
      expect(reset).toBe(false);
      expect(jobs.map((j) => [j.id, j.state, j.lastSeq]).sort()).toEqual(
        [
          [a.id, 'RUNNING', 4],
          [b.id, 'COMPLETED', 3],
        ].sort(),
      );
      // It left the list and is of no interest any more.
      channel.publishChanges([{ ...(await b.facts(['JobQueued'], 'QUEUED')), from: 'COMPLETED' }]);
      channel.publishChanges([await waiting.facts(['JobQueued', 'AttemptStarted'], 'RUNNING')]);
      expect((await nextOf(stream)).jobs.map((j) => j.id)).toEqual([waiting.id]);
      await stream.return?.();
    });

    test('judges what never changes without a read, and the rest on the row', async () => {
      const hub = openHub();
      const [a, b] = [await createJob(), await createJob()];
      const stream = await opened(hub, { filter: { change: (c) => c.jobId === a.id, row: (r) => r.version > 3 } });
      const next = nextOf(stream);
      channel.publishChanges([await b.checkpoint()]);
      await turn(50);
      expect(hub.stats().reads.rows).toBe(0);
      channel.publishChanges([await a.checkpoint()]);
      await eventually(() => expect(hub.stats().reads.rows).toBe(1));
      channel.publishChanges([await a.checkpoint()]);
      expect((await next).jobs).toMatchObject([{ id: a.id, version: 4 }]);
      await stream.return?.();
    });

    test('at most one message per interval', async () => {
      const hub = openHub();
      const job = await createJob();
      const stream = hub.jobsChanged(me, { minIntervalMs: 100 });
      const times: number[] = [];
      const reading = (async () => {
        for await (const _ of stream) times.push(performance.now());
      })();
      for (let i = 0; i < 40; i++) {
        channel.publishChanges([await job.checkpoint()]);
        await turn(10);
      }
      await stream.return?.();
      await reading;
      expect(times.length).toBeGreaterThan(2);
      for (let i = 1; i < times.length; i++) expect((times[i] ?? 0) - (times[i - 1] ?? 0)).toBeGreaterThan(90);
    });

    test('lists share the rows that they read', async () => {
      const hub = openHub();
      const job = await createJob();
      const streams = await Promise.all(Array.from({ length: 50 }, () => opened(hub)));
      expect(hub.stats()).toMatchObject({ streams: 50, tenants: 1, subscriptions: 1 });
      channel.publishChanges([await job.checkpoint()]);
      for (const message of await Promise.all(streams.map(nextOf))) expect(message.jobs).toHaveLength(1);
      expect(hub.stats().reads.rows).toBeLessThanOrEqual(2);
      await Promise.all(streams.map((s) => s.return?.()));
    });

    test('more changes than are kept become a reset', async () => {
      const hub = openHub({ maxChanged: 3 });
      const jobs = await Promise.all(Array.from({ length: 5 }, createJob));
      const stream = await opened(hub);
      for (const job of jobs) channel.publishChanges([await job.checkpoint()]);
      await turn(50);
      expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
      channel.publishChanges([await (jobs[0] as JobWriter).checkpoint()]);
      expect((await nextOf(stream)).jobs).toHaveLength(1);
      await stream.return?.();
    });

    test('a job that is gone becomes a reset', async () => {
      const hub = openHub();
      const job = await createJob();
      const stream = await opened(hub);
      const change = await job.complete();
      await job.remove();
      channel.publishChanges([change]);
      expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
      await stream.return?.();
    });

    test('resets when the channel goes and comes, and while it is down when something moved', async () => {
      const hub = openHub({ pollMs: 20 });
      const job = await JobWriter.create(writeDb, 'QUEUED');
      const stream = await opened(hub);
      channel.setState('down');
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
      channel.setState('live');
      expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
      channel.publishChanges([await job.complete()]);
      expect((await nextOf(stream)).jobs).toMatchObject([{ id: job.id, state: 'COMPLETED' }]);
      await stream.return?.();
    });

    test('a change whose message was lost while all was live becomes a reset', async () => {
      const hub = openHub({ safetyMs: 30 });
      const job = await createJob();
      const stream = await opened(hub);
      await eventually(() => expect(hub.stats().reads.pulses).toBeGreaterThan(1));
      await job.complete();
      expect(await nextOf(stream)).toEqual({ jobs: [], reset: true });
      await stream.return?.();
    });

    test('other tenants are not heard; a filter that throws ends its own stream only', async () => {
      const hub = openHub();
      const job = await createJob();
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
      channel.publishChanges([await job.checkpoint()]);
      await expect(broken.next()).rejects.toThrow('a broken filter');
      expect((await nextOf(stream)).jobs).toHaveLength(1);
      await other.return?.();
      expect((await silent).done).toBe(true);
      await stream.return?.();
    });
  });

  describe('ending', () => {
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
        const hub = openHub();
        const stream = start(hub, (await createJob()).id);
        idle(hub);
        await stream.return?.();
        expect((await stream.next()).done).toBe(true);
        idle(hub);
      });

      test('return() while next() waits settles it and frees everything at once; twice is fine', async () => {
        const hub = openHub();
        const job = await createJob();
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
        const hub = openHub();
        const stream = start(hub, (await createJob()).id);
        const next = stream.next();
        void stream.return?.();
        idle(hub);
        expect((await within(1_000, next)).done).toBe(true);
      });

      test('an abort signal ends it', async () => {
        const hub = openHub();
        const job = await createJob();
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
        const hub = openHub();
        const job = await createJob();
        const stream = start(hub, job.id);
        await take(stream, kind === 'jobEvents' ? 2 : 1);
        const next = stream.next();
        await hub.close();
        await hub.close();
        expect((await within(1_000, next)).done).toBe(true);
        expect((await start(hub, job.id).next()).done).toBe(true);
      });

      test('2,000 streams that come and go leave nothing', async () => {
        const hub = openHub();
        const job = await createJob();
        for (let i = 0; i < 2_000; i++) {
          const stream = start(hub, job.id);
          if (i % 3 > 0) void stream.next();
          if (i % 3 > 1) await turn();
          void stream.return?.();
        }
        idle(hub);
        expect(channel.listeners).toBe(0);
      });
    });

    test('an error frees the stream; the iterator is over then', async () => {
      const hub = openHub();
      const stream = hub.jobEvents(me, newUuid());
      const [first, second] = await Promise.allSettled([stream.next(), stream.next()]);
      expect(first.status).toBe('rejected');
      expect(second).toEqual({ status: 'fulfilled', value: { value: undefined, done: true } });
      expect((await stream.next()).done).toBe(true);
      expect(hub.stats()).toMatchObject({ streams: 0, topics: 0, subscriptions: 0 });
    });

    test('streams are limited', async () => {
      const hub = openHub({ maxStreams: 2 });
      const job = await createJob();
      const kept = [hub.jobEvents(me, job.id), hub.jobProgress(me, job.id)];
      for (const stream of kept) await stream.next();
      await expect(hub.jobsChanged(me).next()).rejects.toThrow(LimitExceeded);
      await kept[0]?.return?.();
      const third = hub.jobsChanged(me);
      expect((await third.next()).value).toMatchObject({ reset: true });
    });
  });

  test('the store is away: at the start Unavailable, later the stream waits for it', async () => {
    const job = await createJob();
    let away = true;
    const fragile: Executor = {
      query: (text, params) => (away ? Promise.reject(new Unavailable()) : db.query(text, params)),
    };
    const hub = openHub({ db: fragile, pollMs: 20, pageSize: 2 });
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
    for (let i = 0; i < 5; i++) channel.publishChanges([{ ...(await job.checkpoint()), events: undefined }]);
    channel.publishChanges([{ ...(await job.complete()), events: undefined }]);
    await turn(100);
    away = false;
    const [facts, rows, [message]] = await within(20_000, Promise.all(all));
    expect(seqs(facts)).toEqual(upTo(8, 2));
    expect(rows.at(-1)?.state).toBe('COMPLETED');
    expect(message).toEqual({ jobs: [], reset: true });
    await lists.return?.();
  });

  test('with the channel down all followed jobs are polled with one statement', async () => {
    channel.setState('down');
    const hub = openHub({ pollMs: 50 });
    const jobs = await Promise.all(Array.from({ length: 40 }, createJob));
    const all = jobs.map((job) => collect(hub.jobEvents(me, job.id)));
    await eventually(() => expect(hub.stats().topics).toBe(40));
    const before = hub.stats().reads.heads;
    await turn(300);
    expect(hub.stats().reads.heads - before).toBeLessThanOrEqual(7);
    for (const job of jobs) await job.complete();
    for (const events of await within(10_000, Promise.all(all))) expect(seqs(events)).toEqual([1, 2, 3]);
  });

  test('with the channel live a lost message is found by the safety poll, or when it comes back', async () => {
    const hub = openHub({ safetyMs: 100 });
    const job = await createJob();
    const stream = hub.jobEvents(me, job.id);
    await take(stream, 2);
    await job.checkpoint();
    expect(seqs(await take(stream, 1))).toEqual([3]);
    const slow = openHub();
    const other = slow.jobEvents(me, job.id);
    await take(other, 3);
    channel.setState('down');
    await job.complete();
    channel.setState('live');
    expect(seqs(await within(5_000, collect(other)))).toEqual([4]);
    await stream.return?.();
  });
});
