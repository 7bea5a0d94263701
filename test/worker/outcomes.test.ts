import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { NonRetryableError, RetryLater } from '../../src/core/handler-errors.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { bench } from './bench.ts';

const soon = { type: 'fixed', delay: 0, jitter: 0 } as const;

const circular: Record<string, unknown> = { name: 'loop' };
circular.self = circular;

const ODD_RESULTS: [name: string, value: () => unknown, code: string | null, result?: unknown][] = [
  ['undefined', () => undefined, null, undefined],
  ['null', () => null, null, null],
  ['a Date', () => new Date(0), null, '1970-01-01T00:00:00.000Z'],
  ['NUL and half a surrogate pair', () => ['\u0000', '\ud800'], null, ['\u0000', '\ud800']],
  ['an undefined member', () => ({ a: undefined, b: 1 }), null, { b: 1 }],
  ['a circular object', () => circular, 'RESULT_NOT_JSON'],
  ['a BigInt', () => ({ n: 1n }), 'RESULT_NOT_JSON'],
  ['a function', () => () => 1, 'RESULT_NOT_JSON'],
  ['a symbol', () => Symbol('x'), 'RESULT_NOT_JSON'],
  ['a Map', () => new Map([[1, 2]]), 'RESULT_NOT_JSON'],
  ['NaN', () => ({ rows: [{ share: Number.NaN }] }), 'RESULT_NOT_JSON'],
  ['undefined in a list', () => [undefined], 'RESULT_NOT_JSON'],
  [
    'a getter that throws',
    () => ({
      get x() {
        throw new Error('no');
      },
    }),
    'RESULT_NOT_JSON',
  ],
  ['something too large', () => 'x'.repeat(1_000_001), 'RESULT_TOO_LARGE'],
];

const THROWN: [name: string, value: () => unknown, code: string, message: RegExp][] = [
  ['a string', () => 'just text', 'Error', /^just text$/],
  ['undefined', () => undefined, 'Error', /^undefined$/],
  ['null', () => null, 'Error', /^null$/],
  ['an object', () => ({ status: 500, url: '/x' }), 'Error', /status: 500/],
  ['a circular error', () => Object.assign(new TypeError('round'), { circular }), 'TypeError', /^round$/],
  ['a code', () => Object.assign(new Error('gone'), { code: 'ECONNRESET' }), 'ECONNRESET', /^gone$/],
  ['an AggregateError', () => new AggregateError([new Error('a'), 'b'], 'all'), 'AggregateError', /^all \(a; b\)$/],
  ['5 MB of message', () => new Error('m'.repeat(5_000_000)), 'Error', /^m{1999}…$/],
  ['NUL characters', () => new Error('a\u0000b'), 'Error', /^a\ufffdb$/],
];

describe.each(databases())('how attempts end, on $name', (store) => {
  test('a returned value is the result; what is no JSON or too large fails at once, and the worker goes on', async () => {
    const b = await bench(store);
    const odd = defineTask({
      name: 'odd',
      run: (_ctx, input) => ODD_RESULTS[input as number]?.[1](),
    });
    await b.work([odd], { concurrency: 3 });
    const ids = await Promise.all(ODD_RESULTS.map((_, i) => b.submit(odd, i)));
    for (const [i, [name, , code, result]] of ODD_RESULTS.entries()) {
      const job = await b.ends(ids[i] ?? '');
      expect([name, job.state, job.attempt], job.error?.message).toEqual([name, code ? 'FAILED' : 'COMPLETED', 1]);
      if (code) expect(job.error).toMatchObject({ code, retryable: false });
      else expect([name, await b.result(job.id)]).toEqual([name, result]);
    }
    expect((await b.job(ids[10] ?? '')).error?.message).toBe('result.rows[0].share is NaN');
  });

  test('whatever is thrown is recorded, cut, and retried until the budget is spent', async () => {
    const b = await bench(store);
    const odd = defineTask({
      name: 'odd',
      maxAttempts: 2,
      backoff: soon,
      run: (_ctx, input) => {
        throw THROWN[input as number]?.[1]();
      },
    });
    await b.work([odd]);
    const ids = await Promise.all(THROWN.map((_, i) => b.submit(odd, i)));
    for (const [i, [name, , code, message]] of THROWN.entries()) {
      const job = await b.ends(ids[i] ?? '');
      expect([name, job.state, job.failures, job.error?.code]).toEqual([name, 'FAILED', 2, code]);
      expect(job.error?.message).toMatch(message);
      expect((await b.attempts(job.id)).map((a) => a.outcome)).toEqual(['FAILED', 'FAILED']);
    }
  });

  test('NonRetryableError fails at once with its code; RetryLater comes back without using up budget', async () => {
    const b = await bench(store);
    const stop = defineTask({
      name: 'stop',
      run: () => {
        throw new NonRetryableError('card refused', { code: 'CARD' });
      },
    });
    const later = defineTask({
      name: 'later',
      maxAttempts: 1,
      run: (ctx) => {
        if (ctx.job.attempt < 3) throw new RetryLater('20ms', { reason: 'not yet' });
        return ctx.job.attempt;
      },
    });
    await b.work([stop, later]);
    const [a, c] = [await b.submit(stop), await b.submit(later)];
    expect(await b.ends(a)).toMatchObject({ state: 'FAILED', attempt: 1, error: { code: 'CARD', retryable: false } });
    expect(await b.ends(c)).toMatchObject({ state: 'COMPLETED', attempt: 3, failures: 0 });
    expect((await b.attempts(c)).map((x) => x.outcome)).toEqual(['POSTPONED', 'POSTPONED', 'SUCCEEDED']);
    expect((await b.events(c)).some((e) => e.data?.reason === 'not yet')).toBe(true);
  });

  test('input and output are checked by the task’s schemas; the handler gets the parsed input', async () => {
    const b = await bench(store);
    const seen: unknown[] = [];
    const typed = defineTask({
      name: 'typed',
      input: z.object({ n: z.number().transform((n) => n * 2), more: z.string().default('d') }),
      output: z.object({ n: z.number().max(10) }),
      run: (_ctx, input) => {
        seen.push(input);
        return { n: input.n, extra: true };
      },
    });
    await b.work([typed]);
    const good = await b.submit(typed, { n: 3 });
    expect(await b.ends(good)).toMatchObject({ state: 'COMPLETED' });
    expect(seen).toEqual([{ n: 6, more: 'd' }]);
    expect(await b.result(good)).toEqual({ n: 6 });
    const large = await b.submit(typed, { n: 6 });
    expect(await b.ends(large)).toMatchObject({
      state: 'FAILED',
      attempt: 1,
      error: { code: 'INVALID_OUTPUT', message: expect.stringMatching(/^output\.n: /) },
    });
  });

  test('an end that the store refuses is recorded as a failure, not tried for ever', async () => {
    const b = await bench(store, {
      wrap: (e) => ({
        ...e,
        async settle(end) {
          if (end.outcome === 'SUCCEEDED') throw new Error('no room for it');
          return e.settle(end);
        },
      }),
    });
    const echo = defineTask({ name: 'echo', run: () => 'fine' });
    await b.work([echo]);
    expect(await b.ends(await b.submit(echo))).toMatchObject({
      state: 'FAILED',
      attempt: 1,
      error: { code: 'RESULT_REFUSED', retryable: false, message: expect.stringContaining('no room for it') },
    });
  });

  test('a wrong input fails at once and the handler is not run', async () => {
    const b = await bench(store);
    let ran = false;
    // Valibot-like: no JSON Schema, so that the submit cannot know.
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: () => ({ issues: [{ message: 'must be even', path: ['rows', 3] }] }),
      },
    };
    const picky = defineTask({
      name: 'picky',
      input: schema,
      run: () => {
        ran = true;
      },
    });
    await b.work([picky]);
    expect(await b.ends(await b.submit(picky, 1))).toMatchObject({
      state: 'FAILED',
      attempt: 1,
      error: { code: 'INVALID_INPUT', message: 'input.rows[3]: must be even', retryable: false },
    });
    expect(ran).toBe(false);
  });
});
