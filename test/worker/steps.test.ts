import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { describe, expect, test } from 'vitest';
import { InsideTransaction } from '../../src/core/errors.ts';
import { StepTimeoutError } from '../../src/core/handler-errors.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { bench } from './bench.ts';

const soon = { type: 'fixed', delay: 0, jitter: 0 } as const;

/** Fails a handler's first attempts. */
const failBefore = (attempt: number, ctx: { job: { attempt: number } }): void => {
  if (ctx.job.attempt < attempt) throw new Error(`attempt ${ctx.job.attempt} fails`);
};

describe.each(databases())('steps and checkpoints, on $name', (store) => {
  test('a step runs once over all attempts and gives its JSON form each time', async () => {
    const b = await bench(store);
    const ran: string[] = [];
    const steps = defineTask({
      name: 'steps',
      backoff: soon,
      run: async (ctx) => {
        const a = await ctx.step('a', (s) => {
          ran.push(`a ${s.attempt} ${s.idempotencyKey === ctx.idempotencyKey('a')}`);
          return { at: new Date(0), none: undefined };
        });
        const [x, y] = await Promise.all([
          ctx.step('x', () => void ran.push('x')),
          ctx.step('y', async () => [1, null]),
        ]);
        failBefore(3, ctx);
        return { a, x, y };
      },
    });
    await b.work([steps]);
    const id = await b.submit(steps);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 3 });
    expect(await b.result(id)).toEqual({ a: { at: '1970-01-01T00:00:00.000Z' }, x: null, y: [1, null] });
    expect(ran).toEqual(['a 1 true', 'x']);
    expect((await b.checkpoints(id)).map((c) => [c.key, c.kind, c.attempt])).toEqual([
      ['a', 'STEP', 1],
      ['x', 'STEP', 1],
      ['y', 'STEP', 1],
    ]);
    expect((await b.attempts(id)).length).toBe(3);
  });

  test('a step may give its value or fail at once, or give anything that can be awaited', async () => {
    const b = await bench(store);
    const mixed = defineTask({
      name: 'mixed',
      run: async (ctx) => {
        const refusal = await ctx
          .step('throws', () => {
            throw new TypeError('not this one');
          })
          .catch((error: Error) => error.message);
        // As query builders are: no promise, and asked for its value only when it is awaited.
        // biome-ignore lint/suspicious/noThenProperty: that is what it is about
        const thenable = { then: (resolve: (value: number) => void) => resolve(2) };
        const second = await ctx.step('thenable', () => thenable as unknown as Promise<number>);
        const seen = await ctx.step('signal', (s) => ({ ...s, signal: s.signal === ctx.signal }));
        let inside: Promise<unknown> | undefined;
        const started = await ctx.step('started', () => {
          inside = ctx.sleep('inside', '1h').catch((error: Error) => error.name);
        });
        return { refusal, second, seen, started, inside: await inside, key: ctx.idempotencyKey('signal') };
      },
    });
    await b.work([mixed]);
    const id = await b.submit(mixed);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED' });
    const result = (await b.result(id)) as { key: string };
    expect(result).toEqual({
      refusal: 'not this one',
      second: 2,
      seen: { attempt: 1, signal: true, idempotencyKey: result.key },
      started: null,
      inside: 'WaitInsideStepError',
      key: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect((await b.checkpoints(id)).map((c) => c.key)).toEqual(['thenable', 'signal', 'started']);
  });

  test('what a step runs begins after the call has returned, in every attempt', async () => {
    const b = await bench(store);
    const order: string[] = [];
    const early = defineTask({
      name: 'early',
      backoff: soon,
      run: async (ctx) => {
        const step = ctx.step(`own ${ctx.job.attempt}`, () => void order.push('step'));
        order.push('call');
        await step;
        failBefore(2, ctx);
      },
    });
    await b.work([early]);
    expect(await b.ends(await b.submit(early))).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect(order).toEqual(['call', 'step', 'call', 'step']);
  });

  test('a step repeats inside the attempt, and its timeout aborts its own signal', async () => {
    const b = await bench(store);
    const tries: number[] = [];
    const reasons: unknown[] = [];
    const picky = defineTask({
      name: 'picky',
      run: async (ctx) => {
        const got = await ctx.step(
          'flaky',
          ({ attempt, signal }) => {
            tries.push(attempt);
            if (attempt === 1) throw new Error('not yet');
            if (attempt === 3) return 'third';
            signal.addEventListener('abort', () => reasons.push(signal.reason));
            return new Promise<string>(() => {});
          },
          { timeout: '50ms', retry: { maxAttempts: 3, delay: '1ms' } },
        );
        const failed = await ctx
          .step('slow', () => new Promise(() => {}), { timeout: '30ms' })
          .catch((error: unknown) => (error as Error).message);
        return [got, failed];
      },
    });
    await b.work([picky]);
    const id = await b.submit(picky);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 1 });
    expect(await b.result(id)).toEqual(['third', 'step "slow" ran longer than 30ms']);
    expect(tries).toEqual([1, 2, 3]);
    expect(reasons).toEqual([expect.any(StepTimeoutError)]);
  });

  test('a key used twice, a key that is none, and data that is none fail the job at once', async () => {
    const b = await bench(store);
    const uses = defineTask({
      name: 'uses',
      run: async (ctx, input) => {
        if (input === 'twice') await Promise.all([ctx.step('k', () => 1), ctx.step('k', () => 2)]);
        if (input === 'mixed') await ctx.checkpoint('k', 1).then(() => ctx.step('k', () => 2));
        if (input === 'empty') await ctx.step('', () => 1);
        if (input === 'long') await ctx.step('k'.repeat(201), () => 1);
        if (input === 'nul') await ctx.checkpoint('a\u0000b', 1);
        if (input === 'map') await ctx.step('k', () => ({ deep: [new Map()] }));
        if (input === 'large') await ctx.checkpoint('k', 'x'.repeat(1_000_001));
        if (input === 'option') await ctx.step('k', () => 1, { timeout: 'soon' });
      },
    });
    await b.work([uses]);
    const expected = {
      twice: ['DUPLICATE_KEY', /"k" was used twice/],
      mixed: ['DUPLICATE_KEY', /"k" was used twice/],
      empty: ['INVALID_KEY', /must not be empty/],
      long: ['INVALID_KEY', /at most 200/],
      nul: ['INVALID_KEY', /NUL/],
      map: ['CHECKPOINT_NOT_JSON', /^step "k"\.deep\[0\] is a Map/],
      large: ['CHECKPOINT_TOO_LARGE', /limit is 1000000|larger than 1000000/],
      option: ['INVALID_OPTION', /timeout must be a duration/],
    } as const;
    for (const [input, [code, message]] of Object.entries(expected)) {
      const job = await b.ends(await b.submit(uses, input));
      expect([input, job.state, job.attempt, job.error?.code]).toEqual([input, 'FAILED', 1, code]);
      expect(job.error?.message).toMatch(message);
    }
  });

  test('ctx.checkpoint saves the newest value, which later attempts restore; calls that nobody waits for keep their order', async () => {
    const b = await bench(store);
    const restored: unknown[] = [];
    const saves = defineTask({
      name: 'saves',
      backoff: soon,
      run: async (ctx) => {
        restored.push(await ctx.restore('at'), await ctx.restore('never'));
        const all = [0, 1, 2, 3, 4].map((i) => ctx.checkpoint('at', { i, attempt: ctx.job.attempt }));
        await Promise.all(all);
        restored.push(await ctx.restore('at'));
        failBefore(2, ctx);
      },
    });
    await b.work([saves]);
    const id = await b.submit(saves);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    const last = (attempt: number) => ({ i: 4, attempt });
    expect(restored).toEqual([undefined, undefined, last(1), last(1), undefined, last(2)]);
    expect((await b.checkpoints(id)).map((c) => [c.key, c.kind, c.data])).toEqual([['at', 'VALUE', last(2)]]);
  });

  test('idempotency keys are the same over attempts and runs, and new after a start from scratch', async () => {
    const b = await bench(store);
    const keys: string[] = [];
    const asks = defineTask({
      name: 'asks',
      backoff: soon,
      run: (ctx) => {
        keys.push(ctx.idempotencyKey('mail'));
        if (keys.length === 1) throw new Error('again');
      },
    });
    await b.work([asks]);
    const id = await b.submit(asks);
    await b.ends(id);
    for (const fromStart of [false, true]) {
      const run = (await b.job(id)).run;
      await b.engine.jobs.retry({ tenant: 'default', actor: 'user:local' }, id, { fromStart });
      await b.reaches(id, 'COMPLETED').then((job) => expect(job.run).toBe(run + 1));
    }
    expect(keys.map((key) => keys.indexOf(key))).toEqual([0, 0, 0, 3]);
  });

  test('a transaction’s writes and its checkpoint commit together, once over all attempts', async () => {
    const b = await bench(store);
    await b.database.work.user.execute(sql`create table public.paid (who text)`);
    const pays = defineTask({
      name: 'pays',
      backoff: soon,
      run: async (ctx) => {
        const paid = await ctx.transaction('pay', async (tx) => {
          await tx.execute(sql`insert into public.paid values (${`attempt ${ctx.job.attempt}`})`);
          if (ctx.job.attempt === 1) throw new Error('rolled back');
          return { by: ctx.job.attempt };
        });
        failBefore(4, ctx);
        return paid;
      },
    });
    await b.work([pays]);
    const id = await b.submit(pays);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 4 });
    expect(await b.result(id)).toEqual({ by: 2 });
    const rows = await b.database.work.query('select who from public.paid');
    expect(rows).toEqual([{ who: 'attempt 2' }]);
  });

  test('inside a transaction every other call is refused before it did anything, and never hangs', async () => {
    const b = await bench(store);
    const errors: unknown[] = [];
    let ran = false;
    const nests = defineTask({
      name: 'nests',
      run: async (ctx) => {
        await ctx.transaction('outer', async () => {
          ctx.progress({ current: 1 });
          ctx.log.info('from inside');
          const calls = [
            () =>
              ctx.step('s', () => {
                ran = true;
              }),
            () =>
              ctx.transaction('t', () => {
                ran = true;
              }),
            () => ctx.checkpoint('c', 1),
            () => ctx.restore('c'),
            () => ctx.db.execute(sql`select 1`),
          ];
          for (const call of calls) errors.push(await Promise.resolve(call()).catch((error: unknown) => error));
        });
        // Outside again, the same keys are free.
        return [await ctx.step('s', () => 'ok'), (await ctx.restore('c')) ?? null];
      },
    });
    await b.work([nests]);
    const id = await b.submit(nests);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 1, progress: { current: 1 } });
    expect(errors).toHaveLength(5);
    for (const error of errors) expect(error).toBeInstanceOf(InsideTransaction);
    expect(ran).toBe(false);
    expect(await b.result(id)).toEqual(['ok', null]);
  });

  test('log lines are stored with the job and the attempt, in order', async () => {
    const b = await bench(store);
    const speaks = defineTask({
      name: 'speaks',
      run: async (ctx) => {
        ctx.log.info('first', { a: 1 });
        ctx.log.warn('nul \u0000');
        ctx.log.error('large', 'x'.repeat(20_000));
        await sleep(300);
      },
    });
    const worker = await b.work([speaks]);
    const id = await b.submit(speaks);
    await b.ends(id);
    await worker.stop();
    const rows = await b.database.read.query(
      'select level, message, attempt, data from waymark.job_logs where job_id = $1::uuid order by id',
      [id],
    );
    expect(rows).toEqual([
      { level: 'info', message: 'first', attempt: 1, data: { a: 1 } },
      { level: 'warn', message: 'nul \ufffd', attempt: 1, data: null },
      { level: 'error', message: 'large', attempt: 1, data: { omitted: expect.stringContaining('16384') } },
    ]);
  });
});
