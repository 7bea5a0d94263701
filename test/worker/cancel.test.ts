import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { AttemptAborted } from '../../src/core/handler-errors.ts';
import type { HandlerContext } from '../../src/worker/context.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { deferred, eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { bench, SHORT_LEASE } from './bench.ts';

const aborted = (signal: AbortSignal): Promise<AttemptAborted> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason as AttemptAborted)));

describe.each(databases())('stopping a running attempt, on $name', (store) => {
  test('a cancel reaches the handler by the nudge, well before a beat is due; one that throws is CANCELED', async () => {
    const b = await bench(store);
    let reason: AttemptAborted | undefined;
    const waits = defineTask({
      name: 'waits',
      run: async (ctx) => {
        reason = await aborted(ctx.signal);
        throw new Error('cleaning up failed');
      },
    });
    await b.work([waits], { options: { heartbeatMs: 20_000, leaseMs: 60_000 } });
    const id = await b.submit(waits);
    await b.reaches(id, 'RUNNING');
    await eventually(() => expect(b.lines.some((l) => l.message === 'worker registered')).toBe(true));
    const asked = performance.now();
    await b.engine.jobs.cancel(me, id, { reason: 'wrong file' });
    const job = await b.ends(id);
    expect(performance.now() - asked).toBeLessThan(2_000);
    expect(reason).toBeInstanceOf(AttemptAborted);
    expect(reason).toMatchObject({ kind: 'cancel', message: expect.stringContaining('wrong file') });
    expect(job).toMatchObject({ state: 'CANCELED', cancelForced: false, failures: 0 });
    const types = (await b.events(id)).map((e) => e.type);
    expect(types.slice(types.indexOf('CancelRequested'))).toEqual([
      'CancelRequested',
      'CancelDelivered',
      'AttemptEnded',
      'JobCanceled',
    ]);
  });

  test('without a nudge the next beat delivers it', async () => {
    const b = await bench(store);
    const waits = defineTask({ name: 'waits', run: async (ctx) => Promise.reject(await aborted(ctx.signal)) });
    const deaf = { ...b.channel, onNudge: () => ({ ready: Promise.resolve(), unsubscribe() {} }) };
    await b.work([waits], { channel: deaf });
    const id = await b.submit(waits);
    await b.reaches(id, 'RUNNING');
    await b.engine.jobs.cancel(me, id);
    expect(await b.ends(id)).toMatchObject({ state: 'CANCELED' });
  });

  test('a handler that returns after the abort, within the grace time, has won', async () => {
    const b = await bench(store);
    const finishes = defineTask({
      name: 'finishes',
      run: async (ctx) => {
        await aborted(ctx.signal);
        return ctx.step('last', () => 'done anyway');
      },
    });
    await b.work([finishes], { options: { graceMs: 5_000 } });
    const id = await b.submit(finishes);
    await b.reaches(id, 'RUNNING');
    await b.engine.jobs.cancel(me, id);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', cancelStoppedAt: null });
    expect(await b.result(id)).toBe('done anyway');
  });

  test('a deaf handler is given up past the grace time, keeps its slot, and its later writes are refused', async () => {
    let beats = 0;
    const b = await bench(store, {
      wrap: (e) => ({
        ...e,
        beat(...args) {
          beats++;
          return e.beat(...args);
        },
      }),
    });
    const release = deferred();
    const late: unknown[] = [];
    const deaf = defineTask({
      name: 'deaf',
      run: async (ctx) => {
        await release.promise;
        ctx.progress({ current: 99 });
        for (const call of [ctx.checkpoint('late', 1), ctx.step('late-step', () => late.push('ran'))]) {
          await call.catch((error) => late.push(error));
        }
      },
    });
    const quick = defineTask({ name: 'quick', run: () => 'ok' });
    const worker = await b.work([deaf, quick], { concurrency: 1 });
    const id = await b.submit(deaf);
    await b.reaches(id, 'RUNNING');
    await b.engine.jobs.cancel(me, id);
    expect(await b.ends(id)).toMatchObject({ state: 'CANCELED', cancelForced: true });
    const next = await b.submit(quick);
    // Time enough for several polls.
    const then = beats + 4;
    await eventually(() => expect(beats).toBeGreaterThanOrEqual(then));
    expect((await b.job(next)).state).toBe('QUEUED');
    expect(worker.busy()).toBe(1);
    expect(b.lines.some((l) => l.message.includes('keeps its slot'))).toBe(true);
    release.resolve();
    expect(await b.ends(next)).toMatchObject({ state: 'COMPLETED' });
    expect(late).toEqual([expect.objectContaining({ kind: 'cancel' }), expect.objectContaining({ kind: 'cancel' })]);
    expect((await b.job(id)).progress).toBe(null);
    expect(await b.checkpoints(id)).toEqual([]);
  });

  test('the timeout fires the signal; throwing then is TIMED_OUT and retried, returning within the grace time wins', async () => {
    const b = await bench(store);
    const kinds: string[] = [];
    const slow = defineTask({
      name: 'slow',
      timeout: '80ms',
      maxAttempts: 2,
      backoff: { type: 'fixed', delay: 0 },
      run: async (ctx) => {
        const reason = await aborted(ctx.signal);
        kinds.push(reason.kind);
        if (ctx.job.attempt === 1) throw new Error('stopped');
        return 'in time';
      },
    });
    await b.work([slow], { options: { graceMs: 5_000 } });
    const id = await b.submit(slow);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2, failures: 1 });
    expect(kinds).toEqual(['timeout', 'timeout']);
    const [first] = await b.attempts(id);
    expect(first).toMatchObject({
      outcome: 'TIMED_OUT',
      error: { code: 'TIMEOUT', message: 'the attempt ran longer than 80ms; then it threw: stopped' },
    });
  });

  test('a handler deaf to its timeout is recorded after no more than twice the timeout, and holds its slot', async () => {
    const b = await bench(store);
    const release = deferred();
    let running = 0;
    let most = 0;
    const deaf = defineTask({
      name: 'deaf',
      timeout: '100ms',
      maxAttempts: 2,
      backoff: { type: 'fixed', delay: 0 },
      run: async (ctx) => {
        most = Math.max(most, ++running);
        if (ctx.job.attempt === 1) await release.promise;
        running--;
        return ctx.job.attempt;
      },
    });
    const worker = await b.work([deaf], { concurrency: 1, options: { graceMs: 20_000 } });
    const id = await b.submit(deaf);
    await eventually(async () =>
      expect((await b.attempts(id))[0]).toMatchObject({
        outcome: 'TIMED_OUT',
        error: { code: 'TIMEOUT', message: expect.stringContaining('may still be running on worker wrk_') },
      }),
    );
    expect((await b.job(id)).attempt).toBe(1);
    expect(worker.busy()).toBe(1);
    release.resolve();
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect(await b.result(id)).toBe(2);
    expect(most).toBe(1);
  });

  test('what a handler left behind changes nothing after its end', async () => {
    const b = await bench(store);
    let ctx: HandlerContext | undefined;
    const ghost = defineTask({
      name: 'ghost',
      run: (c) => {
        ctx = c;
        c.progress({ current: 1 });
        // Nobody waits for these: their refusal must not end the process.
        void c.step('floating', () => sleep(50));
        setTimeout(() => void c.checkpoint('later', 1), 50);
        return 'done';
      },
    });
    await b.work([ghost]);
    const id = await b.submit(ghost);
    const before = await b.ends(id);
    ctx?.progress({ current: 2 });
    ctx?.log.info('a ghost speaks');
    for (const call of [() => ctx?.checkpoint('k', 1), () => ctx?.step('s', () => 1), () => ctx?.restore('k')]) {
      await expect(call()).rejects.toBeInstanceOf(AttemptAborted);
    }
    await expect(ctx?.transaction('t', () => 1)).rejects.toBeInstanceOf(AttemptAborted);
    await sleep(100);
    expect(await b.job(id)).toEqual(before);
    expect(before.progress).toMatchObject({ current: 1 });
  });

  test('an attempt that does not advance is taken away; its handler is told so', async () => {
    const b = await bench(store, { leaseMs: SHORT_LEASE });
    const told = deferred<string>();
    const stuck = defineTask({
      name: 'stuck',
      stallTimeout: '200ms',
      maxAttempts: 2,
      backoff: { type: 'fixed', delay: 0 },
      run: async (ctx) => {
        if (ctx.job.attempt === 2) return 'second';
        told.resolve((await aborted(ctx.signal)).kind);
        return 'first';
      },
    });
    await b.work([stuck]);
    const id = await b.submit(stuck);
    expect(await within(10_000, told.promise)).toBe('not-advancing');
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect(await b.result(id)).toBe('second');
    expect((await b.attempts(id))[0]).toMatchObject({ outcome: 'NOT_ADVANCING' });
  });

  test('progress keeps a slow attempt from counting as stuck', async () => {
    const b = await bench(store, { leaseMs: SHORT_LEASE });
    const slow = defineTask({
      name: 'slow',
      stallTimeout: '1500ms',
      run: async (ctx) => {
        for (let i = 0; i < 30; i++) {
          ctx.progress({ current: i });
          await sleep(100);
        }
      },
    });
    await b.work([slow]);
    expect(await b.ends(await b.submit(slow))).toMatchObject({ state: 'COMPLETED', attempt: 1 });
  });
});
