import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { deferred, eventually, within } from '../support/eventually.ts';
import { bench } from './bench.ts';

const noHints = { onReady: () => ({ ready: Promise.resolve(), unsubscribe() {} }) };

/** Ends with its signal. */
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

describe.each(databases())('a worker’s life, on $name', (store) => {
  test('start and stop may be called at any time and any number of times', async () => {
    const b = await bench(store);
    const echo = defineTask({ name: 'echo', run: (_ctx, input) => ({ input }) });
    const worker = b.worker([echo]);
    await Promise.all([worker.stop(), worker.stop()]);
    const ids = new Set<string>();
    for (let round = 0; round < 4; round++) {
      await Promise.all([worker.start(), worker.start()]);
      ids.add(worker.id);
      expect(await b.ends(await b.submit(echo, round))).toMatchObject({ state: 'COMPLETED', attempt: 1 });
      await Promise.all([worker.stop(), worker.stop({ graceMs: 1 })]);
      expect(worker.busy()).toBe(0);
    }
    expect(ids.size).toBe(4);
    // The last call decides.
    await Promise.all([worker.start(), worker.stop(), worker.start(), worker.stop()]);
    await Promise.all([worker.start(), worker.start().then(() => worker.stop()), worker.stop(), worker.start()]);
    await worker.stop();
    const alive = await b.database.read.query(`select id from waymark.workers where state <> 'LOST'`);
    expect(alive).toEqual([]);
  });

  test('all jobs run once, never more at a time than there are slots', async () => {
    const b = await bench(store);
    let running = 0;
    let most = 0;
    const busy = defineTask({
      name: 'busy',
      run: async () => {
        most = Math.max(most, ++running);
        await sleep(5);
        running--;
      },
    });
    const ids = await Promise.all(Array.from({ length: 60 }, (_, i) => b.submit(busy, i)));
    await b.work([busy], { concurrency: 7 });
    for (const id of ids) expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 1 });
    expect(most).toBe(7);
  });

  test('a hint starts a job long before the poll would; without hints the poll does', async () => {
    const b = await bench(store);
    const echo = defineTask({ name: 'echo', run: () => 1 });
    const hinted = await b.work([echo], { options: { pollMs: 60_000 } });
    // The claim at start is over when a first job has come through.
    for (let i = 0; i < 2; i++) await within(5_000, b.ends(await b.submit(echo)));
    await hinted.stop();
    await b.work([echo], { channel: { ...b.channel, ...noHints } });
    for (let i = 0; i < 2; i++) await within(5_000, b.ends(await b.submit(echo)));
  });

  test('a worker takes only jobs of its tasks and queues', async () => {
    const b = await bench(store);
    const mail = defineTask({ name: 'mail', queue: 'slow', run: () => 1 });
    const echo = defineTask({ name: 'echo', run: () => 2 });
    const [a, c, d] = [await b.submit(mail), await b.submit(echo), await b.submit(echo, null, { queue: 'other' })];
    const first = await b.work([echo], { queues: ['default'] });
    expect(await b.ends(c)).toMatchObject({ state: 'COMPLETED' });
    await first.stop();
    expect([(await b.job(a)).state, (await b.job(d)).state]).toEqual(['QUEUED', 'QUEUED']);
    await b.work([echo, mail]);
    await Promise.all([b.ends(a), b.ends(d)]);
  });

  test('stop lets handlers end, records those that fail, hands the rest back at once, and burns no budget', async () => {
    const b = await bench(store);
    const kinds: unknown[] = [];
    const go = deferred();
    const drains = defineTask({
      name: 'drains',
      maxAttempts: 1,
      run: async (ctx, input) => {
        if (ctx.job.attempt > 1) return 'second';
        if (input === 'long') await untilAborted(ctx.signal).catch((reason) => kinds.push(reason.kind));
        await go.promise;
        if (input === 'throws') throw new Error('broken');
        return 'first';
      },
    });
    const worker = await b.work([drains]);
    const [long, throws, returns] = await Promise.all(['long', 'throws', 'returns'].map((x) => b.submit(drains, x)));
    for (const id of [long, throws, returns]) await b.reaches(id ?? '', 'RUNNING');
    const stopped = worker.stop({ graceMs: 400 });
    const waiting = await b.submit(drains, 'returns');
    go.resolve();
    expect(await b.ends(returns ?? '')).toMatchObject({ state: 'COMPLETED' });
    expect(await b.ends(throws ?? '')).toMatchObject({ state: 'FAILED', error: { message: 'broken' } });
    await stopped;
    expect(kinds).toEqual(['shutdown']);
    expect(await b.job(long ?? '')).toMatchObject({ state: 'QUEUED', failures: 0 });
    expect((await b.job(waiting)).state).toBe('QUEUED');
    await b.work([drains]);
    expect(await b.ends(long ?? '')).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect((await b.attempts(long ?? '')).map((a) => a.outcome)).toEqual(['RELEASED', 'SUCCEEDED']);
  });

  test('a second stop can bring the end forward', async () => {
    const b = await bench(store);
    const deaf = defineTask({ name: 'deaf', run: () => new Promise(() => {}) });
    const worker = await b.work([deaf]);
    const id = await b.submit(deaf);
    await b.reaches(id, 'RUNNING');
    const first = worker.stop({ graceMs: 60_000 });
    await within(5_000, worker.stop({ graceMs: 0 }), 'the stop');
    await first;
    expect(await b.job(id)).toMatchObject({ state: 'QUEUED', failures: 0 });
    expect(worker.busy()).toBe(1);
  });

  test('a job whose claim is under way at stop is handed back', async () => {
    const gate = deferred();
    const claimed = deferred();
    const b = await bench(store, {
      wrap: (e) => ({
        ...e,
        async claim(...args) {
          const jobs = await e.claim(...args);
          if (jobs.length > 0) {
            claimed.resolve();
            await gate.promise;
          }
          return jobs;
        },
      }),
    });
    let ran = false;
    const echo = defineTask({
      name: 'echo',
      run: () => {
        ran = true;
      },
    });
    const worker = await b.work([echo]);
    const id = await b.submit(echo);
    await claimed.promise;
    const stopped = worker.stop();
    gate.resolve();
    await stopped;
    expect(await b.job(id)).toMatchObject({ state: 'QUEUED', attempt: 1, failures: 0 });
    expect(ran).toBe(false);
  });

  test('the last report is stored, whatever comes first: the flush, a checkpoint or the end', async () => {
    const b = await bench(store);
    const reports = defineTask({
      name: 'reports',
      stages: ['read', 'write'],
      run: async (ctx, input) => {
        ctx.progress({ stage: 'read', current: 1, total: 2 });
        if (input === 'flush') {
          await eventually(async () => expect((await b.job(ids[0] ?? '')).progress).toMatchObject({ current: 1 }));
        }
        if (input === 'checkpoint') {
          await ctx.checkpoint('k', 1);
          expect((await b.job(ids[1] ?? '')).progress).toMatchObject({ current: 1, stage: 'read' });
        }
        ctx.progress({ stage: 'write', current: 7, message: 'x' });
      },
    });
    await b.work([reports]);
    const ids: string[] = [];
    for (const input of ['flush', 'checkpoint', 'end']) {
      const id = await b.submit(reports, input, { maxAttempts: 1 });
      ids.push(id);
    }
    for (const id of ids) {
      expect(await b.ends(id)).toMatchObject({
        state: 'COMPLETED',
        progress: {
          stage: 'write',
          stageIndex: 1,
          stageCount: 2,
          nextStage: null,
          current: 7,
          total: null,
          message: 'x',
        },
      });
    }
  });
});
