import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import type { UserTx } from '../../src/db/types.ts';
import type { BatchInfo } from '../../src/worker/context.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { deferred } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { bench } from './bench.ts';

const soon = { type: 'fixed', delay: 0, jitter: 0 } as const;

/** The numbers behind `cursor` up to `last`. */
async function* numbers(cursor: number, last: number) {
  for (let n = cursor + 1; n <= last; n++) yield { value: n, cursor: n };
}

async function table(database: TestDatabase) {
  await database.work.user.execute(sql`create table public.done (n int, attempt int)`);
  return async () =>
    await database.work.query<{ n: number; attempt: number }>('select n, attempt from public.done order by n, attempt');
}

const insert = (tx: UserTx, values: number[], attempt: number) =>
  tx.execute(sql`insert into public.done select n, ${attempt}::int from unnest(${`{${values.join(',')}}`}::int[]) n`);

describe.each(databases())('ctx.batches, on $name', (store) => {
  test('each item’s writes commit once with their cursor; totals, samples and progress cover all attempts', async () => {
    const b = await bench(store);
    const done = await table(b.database);
    const starts: number[] = [];
    const imports = defineTask({
      name: 'imports',
      backoff: soon,
      run: async (ctx) => {
        let batches = 0;
        const open = (cursor: number) => {
          starts.push(cursor);
          return numbers(cursor, 95);
        };
        return ctx.batches(
          'rows',
          { start: 0, source: open, size: 10, total: 95 },
          async (values, { tx, index, cursor }) => {
            await insert(tx, values, ctx.job.attempt);
            expect([index * 10 + values.length, cursor]).toEqual([values.at(-1), values.at(-1)]);
            // The third batch of each of the first attempts is rolled back with what it wrote.
            if (++batches === 3 && ctx.job.attempt < 4) throw new Error('in mid-batch');
            return {
              failed: values.filter((n) => n % 10 === 7).map((n) => ({ item: n, error: new Error(`no ${n}`) })),
            };
          },
        );
      },
    });
    await b.work([imports]);
    const id = await b.submit(imports);
    const job = await b.ends(id);
    expect(job).toMatchObject({ state: 'COMPLETED', attempt: 4, progress: { current: 95, total: 95 } });
    expect(await b.result(id)).toEqual({ processed: 95, succeeded: 86, failed: 9 });
    const rows = await done();
    expect(rows.map((r) => r.n)).toEqual(Array.from({ length: 95 }, (_, i) => i + 1));
    expect(rows.map((r) => r.attempt)).toEqual(rows.map((r) => Math.min(4, Math.ceil(r.n / 20))));
    expect(starts).toEqual([0, 20, 40, 60]);
    const [row] = await b.checkpoints(id);
    expect(row).toMatchObject({
      kind: 'CURSOR',
      data: { cursor: 95, index: 10, finished: true },
      processed: 95,
      succeeded: 86,
      failed: 9,
    });
    expect(row?.errorSamples.map((s) => [s.item, s.message, s.attempt])).toEqual(
      [7, 17, 27, 37, 47, 57, 67, 77, 87].map((n) => [n, `no ${n}`, Math.min(4, Math.ceil(n / 20))]),
    );
  });

  test('a finished key gives its totals without reading the source again', async () => {
    const b = await bench(store);
    let opened = 0;
    const imports = defineTask({
      name: 'imports',
      backoff: soon,
      run: async (ctx) => {
        const source = (cursor: number) => {
          opened++;
          return [1, 2, 3].filter((n) => n > cursor).map((n) => ({ value: n, cursor: n }));
        };
        const totals = await ctx.batches('rows', { start: 0, source, size: 2, transaction: false }, () => {});
        const none = await ctx.batches('none', { start: null, source: () => [], size: 2 }, () => {});
        if (ctx.job.attempt === 1) throw new Error('afterwards');
        return [totals, none];
      },
    });
    await b.work([imports]);
    const id = await b.submit(imports);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect(await b.result(id)).toEqual([
      { processed: 3, succeeded: 3, failed: 0 },
      { processed: 0, succeeded: 0, failed: 0 },
    ]);
    expect(opened).toBe(1);
  });

  test('without transactions the batch in flight is repeated with the same index and idempotency key', async () => {
    const b = await bench(store);
    const calls: [
      attempt: number,
      values: number[],
      Pick<BatchInfo<number, undefined>, 'index' | 'idempotencyKey' | 'tx'>,
    ][] = [];
    const calls2 = defineTask({
      name: 'calls',
      backoff: soon,
      run: (ctx) =>
        ctx.batches('out', { start: 0, source: (c) => numbers(c, 5), size: 2, transaction: false }, (values, batch) => {
          calls.push([
            ctx.job.attempt,
            values,
            { index: batch.index, idempotencyKey: batch.idempotencyKey, tx: batch.tx },
          ]);
          if (ctx.job.attempt === 1 && batch.index === 1) throw new Error('the service is away');
        }),
    });
    await b.work([calls2]);
    const id = await b.submit(calls2);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect(calls.map(([attempt, values, { index }]) => [attempt, index, values])).toEqual([
      [1, 0, [1, 2]],
      [1, 1, [3, 4]],
      [2, 1, [3, 4]],
      [2, 2, [5]],
    ]);
    const keys = calls.map(([, , { idempotencyKey }]) => idempotencyKey);
    expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 1, 1, 3]);
    expect(calls.every(([, , { tx }]) => tx === undefined)).toBe(true);
  });

  test('the source may read the database: it is read outside the transaction, one batch ahead, and closed on every exit', async () => {
    const b = await bench(store);
    const done = await table(b.database);
    const closed: string[] = [];
    const reads = defineTask({
      name: 'reads',
      maxAttempts: 1,
      run: async (ctx, input) => {
        async function* rows(cursor: number, signal: AbortSignal) {
          try {
            for (let n = cursor + 1; ; n++) {
              await ctx.db.execute(sql`select ${n}::int`);
              yield { value: n, cursor: n };
            }
          } finally {
            closed.push(`${input} ${signal.aborted}`);
          }
        }
        await ctx.batches(
          'rows',
          { start: 0, source: (c, s) => rows(c, s.signal), size: 3 },
          async (values, { tx }) => {
            await insert(tx, values, 1);
            if (values.includes(9)) throw new Error('enough');
          },
        );
      },
    });
    await b.work([reads]);
    expect(await b.ends(await b.submit(reads, 'throws'))).toMatchObject({
      state: 'FAILED',
      error: { message: 'enough' },
    });
    expect((await done()).map((r) => r.n)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(closed).toEqual(['throws true']);
  });

  test('a cancel stops between two batches, also while the source is slow', async () => {
    const b = await bench(store);
    const reached = deferred();
    const endless = defineTask({
      name: 'endless',
      run: (ctx) => {
        async function* source(cursor: number) {
          yield { value: 1, cursor: cursor + 1 };
          reached.resolve();
          await new Promise(() => {});
        }
        return ctx.batches('rows', { start: 0, source, size: 1, transaction: false }, () => {});
      },
    });
    const worker = await b.work([endless], { options: { graceMs: 10_000 } });
    const id = await b.submit(endless);
    await reached.promise;
    await b.engine.jobs.cancel(me, id);
    expect(await b.ends(id)).toMatchObject({ state: 'CANCELED', cancelForced: false });
    expect(worker.busy()).toBe(0);
    expect(await b.checkpoints(id)).toMatchObject([{ processed: 1 }]);
  });

  test('what would only show after a crash is refused at once: odd cursors, returns, sources and sizes', async () => {
    const b = await bench(store);
    const odd = defineTask({
      name: 'odd',
      run: (ctx, input) => {
        const one = () => [{ value: 1, cursor: 1 }];
        const batches = (over: object, fn: () => unknown = () => {}) =>
          ctx.batches('k', { start: 0, source: one, size: 1, ...over } as never, fn as never);
        if (input === 'date cursor') return batches({ source: () => [{ value: 1, cursor: new Date() }] });
        if (input === 'map cursor') return batches({ start: new Map() });
        if (input === 'return') return batches({}, () => 'fine');
        if (input === 'too many') return batches({}, () => ({ failed: [1, 2].map((item) => ({ item, error: 'x' })) }));
        if (input === 'not iterable') return batches({ source: () => 7 });
        if (input === 'not items') return batches({ source: () => [1] });
        return batches({ size: 0 });
      },
    });
    await b.work([odd]);
    const codes = {
      'date cursor': 'CURSOR_NOT_JSON',
      'map cursor': 'CURSOR_NOT_JSON',
      return: 'INVALID_BATCH_RETURN',
      'too many': 'INVALID_BATCH_RETURN',
      'not iterable': 'INVALID_SOURCE',
      'not items': 'INVALID_SOURCE',
      size: 'INVALID_OPTION',
    };
    for (const [input, code] of Object.entries(codes)) {
      const job = await b.ends(await b.submit(odd, input));
      expect([input, job.state, job.attempt, job.error?.code]).toEqual([input, 'FAILED', 1, code]);
    }
  });
});
