import { describe, expect, test } from 'vitest';
import { NotFound } from '../../src/core/errors.ts';
import { databases } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { collect, liveBench, turn } from './live-bench.ts';

describe.each(databases())('jobProgress on $name', ({ open }) => {
  const bench = liveBench(open);

  test('gives the job at once, then the newest; never an older one; the terminal one last', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const stream = hub.jobProgress(me, job.id);
    const first = await stream.next();
    expect(first.value).toMatchObject({ id: job.id, state: 'RUNNING', version: 2, progress: null });
    const old = await job.progress(1);
    for (let i = 2; i <= 20; i++) bench.channel.publishChanges([await job.progress(i)]);
    bench.channel.publishChanges([old]);
    await eventually(async () => {
      const next = await within(1_000, stream.next());
      expect(next.value?.progress?.current).toBe(20);
    });
    bench.channel.publishChanges([await job.complete()]);
    const rest = await within(10_000, collect(stream));
    expect(rest.at(-1)).toMatchObject({ state: 'COMPLETED', version: 23 });
    expect(await collect(hub.jobProgress(me, job.id))).toHaveLength(1);
  });

  test('a slow reader skips what it has missed', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const stream = hub.jobProgress(me, job.id);
    await stream.next();
    for (let i = 1; i <= 30; i++) {
      bench.channel.publishChanges([await job.progress(i)]);
      await turn();
    }
    await eventually(() => expect(hub.stats().reads.rows).toBeGreaterThan(1));
    await turn(50);
    expect((await stream.next()).value.progress).toMatchObject({ current: 30 });
    await stream.return?.();
  });

  test('300 streams share one read per change', async () => {
    const hub = bench.openHub();
    const job = await bench.createJob();
    const all = Array.from({ length: 300 }, () => collect(hub.jobProgress(me, job.id)));
    await eventually(() => expect(hub.stats().streams).toBe(300));
    for (let i = 0; i < 49; i++) {
      bench.channel.publishChanges([await job.progress(i)]);
      await turn();
    }
    bench.channel.publishChanges([await job.complete()]);
    for (const rows of await within(20_000, Promise.all(all))) expect(rows.at(-1)?.state).toBe('COMPLETED');
    expect(hub.stats().reads.rows).toBeLessThanOrEqual(52);
  });

  test('goes on with the older job when the store is restored from a copy', async () => {
    const hub = bench.openHub({ safetyMs: 30 });
    const job = await bench.createJob();
    await job.facts(['CheckpointSaved', 'CheckpointSaved']);
    await job.checkpoint();
    const stream = hub.jobProgress(me, job.id);
    expect((await stream.next()).value).toMatchObject({ version: 4, lastSeq: 5 });
    const next = stream.next();
    await job.rewindTo(2);
    expect((await within(10_000, next)).value).toMatchObject({ version: 2, lastSeq: 2 });
    bench.channel.publishChanges([await job.complete()]);
    expect(await within(10_000, collect(stream))).toMatchObject([{ state: 'COMPLETED', version: 3 }]);
  });

  test('untilTerminal: false stays open; removal is NotFound; a bare row is given and is the end', async () => {
    const hub = bench.openHub({ safetyMs: 30 });
    const job = await bench.createJob();
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

    const keyed = await bench.createJob();
    await keyed.complete();
    await keyed.remove(true);
    const bare = await within(10_000, collect(hub.jobProgress(me, keyed.id, { untilTerminal: false })));
    expect(bare).toMatchObject([{ state: 'COMPLETED', prunedAt: expect.any(String) }]);
  });
});
