import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { eq, sql } from 'drizzle-orm';
import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import { defineTask, NonRetryableError } from 'waymark';
import { z } from 'zod';

/** The tables of the handlers' own writes. Nothing in them forbids a second write: it has to show. */
const written = pgTable('chaos_written', { job: text('job').notNull(), item: integer('item').notNull() });
const counters = pgTable('chaos_counters', { job: text('job').primaryKey(), value: integer('value').notNull() });

/** A budget that the faults of a round cannot use up, and a wait that they do not hide behind. */
const policy = { maxAttempts: 50, backoff: { type: 'fixed', delay: '200ms' } } as const;
const ms = z.object({ ms: z.number() });

/** Every result, checkpoint and report says which attempt it is from. */
export const echo = defineTask({
  ...policy,
  name: 'echo',
  input: z.object({ text: z.string() }),
  run: (ctx, input) => ({ by: ctx.job.attempt, text: input.text }),
});

/** Checkpointed steps; each is told to the ledger by the process that runs it. */
export const steps = defineTask({
  ...policy,
  name: 'steps',
  input: z.object({ n: z.number(), ms: z.number() }),
  async run(ctx, input) {
    const by = ctx.job.attempt;
    for (let i = 0; i < input.n; i++) {
      await ctx.step(`step ${i}`, async ({ signal }) => {
        appendFileSync(process.env.CHAOS_LEDGER as string, `${ctx.job.id} ${by} ${i} ${process.pid}\n`);
        await sleep(input.ms, undefined, { signal });
        return { by };
      });
      ctx.progress({ current: i + 1, total: input.n, data: { by } });
    }
    return { by };
  },
});

/** Rows that are written with the position behind them. */
export const batches = defineTask({
  ...policy,
  name: 'batches',
  input: z.object({ items: z.number(), size: z.number() }),
  async run(ctx, { items, size }) {
    const source = {
      start: 0,
      size,
      total: items,
      *source(from: number) {
        for (let i = from; i < items; i++) yield { value: i, cursor: i + 1 };
      },
    };
    const totals = await ctx.batches('items', source, async (values, { tx }) => {
      await tx.insert(written).values(values.map((item) => ({ job: ctx.job.id, item })));
    });
    return { by: ctx.job.attempt, ...totals };
  },
});

/** Adds one to its counter, `n` times, each in a transaction of its own. */
export const counter = defineTask({
  ...policy,
  name: 'counter',
  input: z.object({ n: z.number() }),
  async run(ctx, { n }) {
    const [job, by] = [ctx.job.id, ctx.job.attempt];
    for (let i = 0; i < n; i++) {
      await ctx.transaction(`add ${i}`, async (tx) => {
        if (i === 0) await tx.insert(counters).values({ job, value: 0 });
        await tx
          .update(counters)
          .set({ value: sql`${counters.value} + 1` })
          .where(eq(counters.job, job));
        return { by };
      });
    }
    return { by };
  },
});

export const flaky = defineTask({
  ...policy,
  name: 'flaky',
  input: z.object({ k: z.number() }),
  run(ctx, { k }) {
    if (ctx.job.attempt <= k) throw Object.assign(new Error('not yet'), { code: 'NOT_YET' });
    return { by: ctx.job.attempt };
  },
});

/** Stops when it is told to. */
export const nap = defineTask({
  ...policy,
  name: 'nap',
  input: ms,
  async run(ctx, input) {
    await sleep(input.ms, undefined, { signal: ctx.signal });
    return { by: ctx.job.attempt };
  },
});

/** Does not stop when it is told to. */
export const deaf = defineTask({
  ...policy,
  name: 'deaf',
  input: ms,
  async run(ctx, input) {
    await sleep(input.ms);
    return { by: ctx.job.attempt };
  },
});

export const burst = defineTask({
  ...policy,
  name: 'burst',
  input: z.object({ n: z.number() }),
  async run(ctx, { n }) {
    for (let i = 1; i <= n; i++) {
      ctx.progress({ current: i, total: n, data: { by: ctx.job.attempt } });
      if (i % 100 === 0) await sleep(1);
    }
    return { by: ctx.job.attempt };
  },
});

export const doomed = defineTask({
  ...policy,
  name: 'doomed',
  run() {
    throw new NonRetryableError('as planned', { code: 'DOOMED' });
  },
});

/** Fails for good in its first run, behind a checkpoint that the second run must find. */
export const secondRun = defineTask({
  ...policy,
  name: 'secondRun',
  async run(ctx) {
    const { run, attempt: by } = ctx.job;
    await ctx.step('first', async () => ({ by }));
    if (run === 1) throw new NonRetryableError('as planned', { code: 'DOOMED' });
    return { by };
  },
});

/** Waits for children of its own, which must be there once however often it is begun. */
export const family = defineTask({
  ...policy,
  name: 'family',
  input: z.object({ n: z.number() }),
  async run(ctx, { n }) {
    const specs = Array.from({ length: n }, (_, i) => ({ task: echo, input: { text: `child ${i}` } }));
    const results = await ctx.children('children', specs);
    return { by: ctx.job.attempt, texts: results.map((r) => r.text) };
  },
});

/** Waits for time, and for people that never decide. */
export const waits = defineTask({
  ...policy,
  name: 'waits',
  input: ms,
  async run(ctx, input) {
    await ctx.sleep('first', input.ms);
    await ctx.approval('review', { title: 'Go on?', expiresIn: input.ms, onExpire: 'approve' });
    await ctx.sleep('second', input.ms);
    return { by: ctx.job.attempt };
  },
});

export default [echo, steps, batches, counter, flaky, nap, deaf, burst, doomed, secondRun, family, waits];

export async function setup({ db }: { db: { execute(text: string): Promise<unknown> } }): Promise<void> {
  await db.execute('create table if not exists chaos_written (job text not null, item integer not null)');
  await db.execute('create table if not exists chaos_counters (job text primary key, value integer not null)');
}
