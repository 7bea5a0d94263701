import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { describe, expect, test, vi } from 'vitest';
import type { ExecutionEngine } from '../../src/engine/types.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { deferred, eventually, within } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { bench, SHORT_LEASE } from './bench.ts';
import { type Fault, faulty } from './faults.ts';

// Leases have to run out, and a busy machine takes its time.
vi.setConfig({ testTimeout: 90_000 });

const soon = { type: 'fixed', delay: 0, jitter: 0 } as const;

describe.each(databases())('a worker cut off from its store, on $name', (store) => {
  test('one that was given up as lost stops its handlers, and goes on under a new id', async () => {
    const b = await bench(store, { leaseMs: SHORT_LEASE });
    const kinds: unknown[] = [];
    const long = defineTask({
      name: 'long',
      run: async (ctx) => {
        if (ctx.job.attempt > 1) return 'second';
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
        kinds.push(ctx.signal.reason.kind, await ctx.checkpoint('late', 1).catch((error) => error.kind));
        return 'first';
      },
    });
    const worker = await b.work([long]);
    const before = worker.id;
    const id = await b.submit(long);
    await b.reaches(id, 'RUNNING');
    await b.database.work.query(`update waymark.workers set state = 'LOST' where id = $1::uuid`, [before]);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect(await b.result(id)).toBe('second');
    expect(kinds).toEqual(['lease-lost', 'lease-lost']);
    expect(worker.id).not.toBe(before);
    expect(await b.attempts(id)).toMatchObject([
      { outcome: 'STALLED', workerId: before },
      { outcome: 'SUCCEEDED', workerId: worker.id },
    ]);
    expect(await b.checkpoints(id)).toEqual([]);
  });

  test('an outage shorter than the lease costs nothing: handlers go on, and what they saved meanwhile is saved', async () => {
    let away = false;
    const b = await bench(store, { wrap: (e) => faulty(e, () => (away ? 'before' : 'none')), leaseMs: SHORT_LEASE });
    const started = deferred();
    const steady = defineTask({
      name: 'steady',
      run: async (ctx) => {
        started.resolve();
        await eventually(() => expect(away).toBe(true));
        const saved = await ctx.step('during', () => 'saved');
        return [saved, ctx.signal.aborted];
      },
    });
    await b.work([steady]);
    const id = await b.submit(steady);
    await started.promise;
    away = true;
    await sleep(SHORT_LEASE / 3);
    away = false;
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 1 });
    expect(await b.result(id)).toEqual(['saved', false]);
    const outage = b.lines.filter((l) => l.level === 'warn' && l.message.startsWith('cannot '));
    expect(outage.length).toBeLessThanOrEqual(6);
  });

  test('an outage longer than the lease stops the handlers; afterwards the job runs again, and only once', async () => {
    let away = false;
    const b = await bench(store, { wrap: (e) => faulty(e, () => (away ? 'before' : 'none')), leaseMs: SHORT_LEASE });
    const started = deferred();
    let told: unknown;
    const cut = defineTask({
      name: 'cut',
      run: async (ctx) => {
        if (ctx.job.attempt > 1) return ctx.job.attempt;
        started.resolve();
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
        told = ctx.signal.reason.kind;
        return 'too late';
      },
    });
    const worker = await b.work([cut], { options: { pollMs: 50 } });
    const id = await b.submit(cut);
    await started.promise;
    away = true;
    await eventually(() => expect(told).toBe('lease-lost'));
    expect(worker.busy()).toBe(0);
    away = false;
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect(await b.result(id)).toBe(2);
    expect(['RELEASED', 'STALLED']).toContain((await b.attempts(id))[0]?.outcome);
  });

  test('a stop while the store is away ends in time and leaves nothing behind that goes on trying', async () => {
    let away = false;
    let calls = 0;
    const choose = (): Fault => {
      calls++;
      return away ? 'before' : 'none';
    };
    const b = await bench(store, { wrap: (e) => faulty(e, choose) });
    const waits = defineTask({
      name: 'waits',
      run: (ctx) => new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)),
    });
    const worker = await b.work([waits]);
    const id = await b.submit(waits);
    await b.reaches(id, 'RUNNING');
    away = true;
    await within(6_000, worker.stop({ graceMs: 50 }), 'the stop');
    await eventually(() => expect(worker.busy()).toBe(0));
    const after = calls;
    await sleep(1_000);
    expect(calls - after).toBeLessThanOrEqual(1);
    expect((await b.job(id)).state).toBe('RUNNING');
  });

  test('a store that never answers does not keep the slot of a handler that lost its job', async () => {
    const wrap = (e: ExecutionEngine): ExecutionEngine => ({
      ...e,
      saveCheckpoint: (write) => (write.key === 'hangs' ? new Promise(() => {}) : e.saveCheckpoint(write)),
    });
    const b = await bench(store, { wrap, leaseMs: SHORT_LEASE });
    const kinds: unknown[] = [];
    const hangs = defineTask({
      name: 'hangs',
      run: async (ctx) => {
        if (ctx.job.attempt > 1) return 'second';
        return ctx.checkpoint('hangs', 1).catch((error) => {
          kinds.push(error.kind);
          throw error;
        });
      },
    });
    const worker = await b.work([hangs], { concurrency: 1 });
    const id = await b.submit(hangs);
    await b.reaches(id, 'RUNNING');
    await b.database.work.query(`update waymark.workers set state = 'LOST' where id = $1::uuid`, [worker.id]);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect(kinds).toEqual(['lease-lost']);
  });

  test('jobs of a claim whose answer was lost are handed back within a few beats, not after the lease', async () => {
    let lose = 0;
    const choose = (verb: string): Fault => (verb === 'claim' && lose-- > 0 ? 'after' : 'none');
    const b = await bench(store, { wrap: (e) => faulty(e, choose) });
    const echo = defineTask({ name: 'echo', maxAttempts: 1, run: (ctx) => ctx.job.attempt });
    const ids = await Promise.all([b.submit(echo), b.submit(echo)]);
    lose = 1;
    const started = performance.now();
    await b.work([echo]);
    for (const id of ids) {
      expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2, failures: 0 });
      expect((await b.attempts(id)).map((a) => a.outcome)).toEqual(['RELEASED', 'SUCCEEDED']);
    }
    expect(performance.now() - started).toBeLessThan(8_000);
  });

  test('with one call in five failing, half of them after they worked, every write happens once and every job ends', async () => {
    const random = seededRandom();
    let faults = 0;
    const choose = (verb: keyof ExecutionEngine): Fault => {
      if (verb === 'registerWorker' || random() >= 0.2) return 'none';
      faults++;
      return random() < 0.5 ? 'before' : 'after';
    };
    const b = await bench(store, { wrap: (e) => faulty(e, choose) });
    await b.database.work.user.execute(sql`create table public.sums (job int, what text)`);
    const jobs = 25;
    const sums = defineTask({
      name: 'sums',
      backoff: soon,
      run: async (ctx, input) => {
        const job = input as number;
        ctx.progress({ message: 'begun' });
        await ctx.step('step', () => job);
        await ctx.transaction('once', (tx) =>
          tx.execute(sql`insert into public.sums values (${job}, 'once')`).then(() => null),
        );
        const source = (cursor: number) =>
          [1, 2, 3, 4, 5].filter((n) => n > cursor).map((n) => ({ value: n, cursor: n }));
        return ctx.batches('rows', { start: 0, source, size: 2 }, async (values, { tx }) => {
          for (const n of values) await tx.execute(sql`insert into public.sums values (${job}, ${`row ${n}`})`);
        });
      },
    });
    const ids = await Promise.all(Array.from({ length: jobs }, (_, i) => b.submit(sums, i)));
    await b.work([sums], { concurrency: 5 });
    for (const id of ids) {
      expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', failures: 0 });
      expect(await b.result(id)).toEqual({ processed: 5, succeeded: 5, failed: 0 });
    }
    const rows = await b.database.work.query<{ what: string; n: number; jobs: number }>(
      'select what, count(*)::int as n, count(distinct job)::int as jobs from public.sums group by what order by what',
    );
    const names = ['once', ...[1, 2, 3, 4, 5].map((n) => `row ${n}`)];
    expect(rows).toEqual(names.map((what) => ({ what, n: jobs, jobs })));
    expect(faults).toBeGreaterThan(25);
  });
});
