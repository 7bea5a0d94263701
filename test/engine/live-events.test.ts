import { describe, expect, test } from 'vitest';
import { CursorInvalid, NotFound } from '../../src/core/errors.ts';
import { newUuid, publicId } from '../../src/core/ids.ts';
import { databases } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { collect, liveBench, seqs, take, turn, upTo } from './live-bench.ts';

describe.each(databases())('jobEvents on $name', ({ open }) => {
  const bench = liveBench(open);

  test('told to look, a stream reads what it was not told', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const stream = hub.jobEvents(me, job.id);
    await take(stream, 2);
    const rest = collect(stream);
    await job.checkpoint();
    bench.channel.look();
    await job.complete();
    bench.channel.look();
    expect(seqs(await within(10_000, rest))).toEqual([3, 4]);
  });

  test('replays, goes live, and ends after the terminal event', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    await job.checkpoint();
    const stream = hub.jobEvents(me, job.id);
    expect(seqs(await take(stream, 3))).toEqual([1, 2, 3]);
    bench.channel.publishChanges([await job.checkpoint()]);
    bench.channel.publishChanges([await job.facts(['CheckpointSaved', 'ArtifactStored'])]);
    bench.channel.publishChanges([await job.complete()]);
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
    const hub = bench.openHub();
    const job = await bench.createJob();
    const live = hub.jobEvents(me, job.id, { after: 2 });
    const first = live.next();
    await eventually(() => expect(hub.stats().reads.rows).toBe(1));
    await turn(20);
    bench.channel.publishChanges([await job.checkpoint()]);
    const fromChannel = await first;
    const [fromStore] = await take(bench.openHub().jobEvents(me, job.id, { after: 2 }), 1);
    expect(fromChannel.value).toEqual(fromStore);
    expect(hub.stats().reads.events).toBe(0);
    await live.return?.();
  });

  test('a gap is filled from the store; duplicates and older messages are dropped', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const stream = hub.jobEvents(me, job.id);
    await take(stream, 2);
    const lost = await job.checkpoint();
    const second = await job.checkpoint();
    bench.channel.publishChanges([second]);
    bench.channel.publishChanges([second]);
    expect(seqs(await take(stream, 2))).toEqual([3, 4]);
    bench.channel.publishChanges([lost]);
    const stripped = { ...(await job.checkpoint()), events: undefined };
    bench.channel.publishChanges([lost, stripped]);
    expect(seqs(await take(stream, 1))).toEqual([5]);
    bench.channel.publishChanges([await job.complete(), lost, second]);
    expect(seqs(await within(10_000, collect(stream)))).toEqual([6]);
  });

  test("goes on past an earlier run's terminal event, to the end of the newest run", async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    await job.fail();
    await job.retry();
    const stream = hub.jobEvents(me, job.id);
    expect(seqs(await take(stream, 6))).toEqual(upTo(6));
    bench.channel.publishChanges([await job.complete()]);
    expect(seqs(await within(10_000, collect(stream)))).toEqual([7]);

    const replay = await within(10_000, collect(hub.jobEvents(me, job.id)));
    expect(replay.map((e) => e.type)).toEqual([
      ...['JobSubmitted', 'AttemptStarted', 'AttemptEnded', 'JobFailed'],
      ...['JobQueued', 'AttemptStarted', 'JobCompleted'],
    ]);
    // A page that ends with the earlier terminal event is not the end either.
    const paged = bench.openHub({ pageSize: 4, ringSize: 1 });
    expect(seqs(await within(10_000, collect(paged.jobEvents(me, job.id))))).toEqual(upTo(7));
  });

  test('`after` the terminal event completes at once; after an earlier one it goes on', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    await job.fail();
    expect(await within(10_000, collect(hub.jobEvents(me, job.id, { after: 4 })))).toEqual([]);
    await job.retry();
    const open = hub.jobEvents(me, job.id, { after: 4 });
    expect(seqs(await take(open, 2))).toEqual([5, 6]);
    bench.channel.publishChanges([await job.complete()]);
    expect(seqs(await within(10_000, collect(open)))).toEqual([7]);
    expect(await within(10_000, collect(hub.jobEvents(me, job.id, { after: 7 })))).toEqual([]);
  });

  test('untilTerminal: false stays open over runs', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    await job.fail();
    const stream = hub.jobEvents(me, job.id, { after: 2, untilTerminal: false });
    expect(seqs(await take(stream, 2))).toEqual([3, 4]);
    const next = stream.next();
    bench.channel.publishChanges([await job.retry()]);
    bench.channel.publishChanges([await job.complete()]);
    expect((await within(10_000, next)).value.seq).toBe(5);
    expect(seqs(await take(stream, 2))).toEqual([6, 7]);
    expect(hub.stats().streams).toBe(1);
    await stream.return?.();
  });

  test('`after` beyond the newest event is CursorInvalid, also when the store is rewound in mid-stream', async () => {
    const hub = bench.openHub({ safetyMs: 30 });
    const job = await bench.createJob();
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
    const hub = bench.openHub();
    const job = await bench.createJob();
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
    const hub = bench.openHub({ safetyMs: 30 });
    const job = await bench.createJob();
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
    const hub = bench.openHub({ pageSize: 2, ringSize: 2 });
    const job = await bench.createJob();
    await job.facts(['CheckpointSaved', 'CheckpointSaved', 'CheckpointSaved', 'CheckpointSaved']);
    const stream = hub.jobEvents(me, job.id);
    await take(stream, 2);
    await job.remove();
    await expect(within(10_000, stream.next())).rejects.toThrow(NotFound);
  });
});
