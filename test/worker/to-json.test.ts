import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toJsonText } from '../../src/worker/to-json.ts';

const text = (value: unknown, maxBytes = 1_000_000) => toJsonText(value, 'result', maxBytes);

test('a JSON value gives the very text of JSON.stringify', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 6 }), (value) => {
      expect(text(value)).toEqual({ ok: true, text: JSON.stringify(value) });
    }),
  );
});

test('it never throws, and what it takes comes back as JSON.stringify would store it', () => {
  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
  });
  fc.assert(
    fc.property(anything, (value) => {
      const json = text(value);
      if (json.ok) expect(json.text).toBe(JSON.stringify(value ?? null));
      else expect(json.message.startsWith('result')).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

describe('what would silently change is refused with its place', () => {
  class Point {
    x = 1;
  }
  const loop: unknown[] = [];
  loop.push(loop);
  let deep: unknown = 1;
  for (let i = 0; i < 300; i++) deep = [deep];
  const cases: [value: unknown, message: string][] = [
    [{ rows: [1, { at: new Map() }] }, 'result.rows[1].at is a Map, not a plain object'],
    [new Set(), 'result is a Set, not a plain object'],
    [new Point(), 'result is a Point, not a plain object'],
    [new Uint8Array(2), 'result is a Uint8Array, not a plain object'],
    [new Error('x'), 'result is a Error, not a plain object'],
    [{ 'odd name': 1n }, 'result["odd name"] is a bigint'],
    [{ f() {} }, 'result.f is a function'],
    [Symbol('s'), 'result is a symbol'],
    [[1, undefined], 'result[1] is undefined'],
    [[Number.NaN], 'result[0] is NaN'],
    [{ a: Number.POSITIVE_INFINITY }, 'result.a is Infinity'],
    [loop, 'result[0] refers to itself'],
  ];
  test.each(cases.map(([value, message]) => ({ message, value: () => value })))('$message', ({ value, message }) => {
    expect(text(value())).toEqual({ ok: false, problem: 'not-json', message });
  });

  test('nesting deeper than any parser should meet', () => {
    expect(text(deep)).toMatchObject({ problem: 'not-json', message: expect.stringContaining('deeper than 200') });
  });
});

test('toJSON decides, an undefined member is left out, the same object may stand in two places', () => {
  const shared = { n: 1 };
  const value = { at: new Date(0), url: new URL('https://a/b'), none: undefined, a: shared, b: shared };
  expect(text(value)).toEqual({ ok: true, text: JSON.stringify(value) });
});

test('each getter is read once: a second reading could give something else', () => {
  let reads = 0;
  const value = {
    get n() {
      return ++reads;
    },
  };
  expect(text(value)).toEqual({ ok: true, text: '{"n":1}' });
});

test('the limit counts bytes of UTF-8, and a huge value is refused without its text being made', () => {
  expect(text('ä', 4)).toEqual({ ok: true, text: '"ä"' });
  expect(text('ä', 3)).toMatchObject({
    ok: false,
    problem: 'too-large',
    message: 'result has 4 bytes as JSON; the limit is 3',
  });
  const huge = 'x'.repeat(300 * 1024 * 1024);
  const before = process.memoryUsage().rss;
  for (const value of [huge, [huge], { a: { b: huge } }]) expect(text(value)).toMatchObject({ problem: 'too-large' });
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  const endless = {
    get again() {
      return endless;
    },
    toJSON: () => ({ list: Array.from({ length: 1_000 }, () => 'x'.repeat(10_000)) }),
  };
  expect(text(endless)).toMatchObject({ problem: 'too-large' });
});
