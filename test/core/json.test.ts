import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonDigest, jsonIssues, memberPath, storableText, textProblem } from '../../src/core/json.ts';

class Point {
  x = 1;
}

describe('what may be stored as JSON', () => {
  test('every JSON value without NUL and lone surrogates passes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        fc.pre(textProblem(text) === null && !/\\u(0000|d[89a-f])/i.test(text));
        expect(jsonIssues(value, 'input')).toEqual([]);
      }),
    );
  });

  test.each([
    ['a NUL', { rows: [{ name: 'a\u0000b' }] }, 'input.rows[0].name', 'NUL'],
    ['half a surrogate pair', ['ok', '\ud800'], 'input[1]', 'surrogate'],
    ['a NUL in a name', { 'a\u0000': 1 }, 'input["a\ufffd"]', 'the name'],
    ['NaN', { n: Number.NaN }, 'input.n', 'finite'],
    ['Infinity', [[Number.POSITIVE_INFINITY]], 'input[0][0]', 'finite'],
    ['a BigInt', { id: 1n }, 'input.id', '2^53'],
    ['undefined in a list', [undefined], 'input[0]', 'not undefined'],
    ['a function', { f: () => 1 }, 'input.f', 'not function'],
    ['a symbol', Symbol('s'), 'input', 'not symbol'],
    ['a Date', { at: new Date(0) }, 'input.at', 'not a Date'],
    ['a Map', new Map(), 'input', 'not a Map'],
    ['a class instance', { p: new Point() }, 'input.p', 'not a Point'],
  ])('%s is refused with its path', (_, value, path, rule) => {
    const issues = jsonIssues(value, 'input');
    expect(issues).toHaveLength(1);
    expect(issues[0]?.path).toBe(path);
    expect(issues[0]?.message).toContain(rule);
  });

  test('a value that refers to itself is refused, one that is used twice is not', () => {
    const twice = { a: 1 };
    expect(jsonIssues({ x: twice, y: twice }, 'input')).toEqual([]);
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    expect(jsonIssues(loop, 'input')).toEqual([{ path: 'input.self', message: 'refers to itself' }]);
  });

  test('nesting has a limit, and even far beyond it nothing overflows', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(jsonIssues(deep, 'input')[0]?.message).toContain('nested deeper');
  });
});

describe('the digest of a value', () => {
  test('does not depend on the order of names', () => {
    const shuffled = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(shuffled)
        : value !== null && typeof value === 'object'
          ? Object.fromEntries(
              Object.entries(value)
                .reverse()
                .map(([k, v]) => [k, shuffled(v)]),
            )
          : value;
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(jsonDigest(shuffled(value))).toBe(jsonDigest(value));
      }),
    );
  });

  test('is the sha256 of the canonical text (RFC 8785)', () => {
    // printf '{"a":1,"b":[true,null]}' | sha256sum
    expect(jsonDigest({ b: [true, null], a: 1 })).toBe(
      '1cc69c7fa23616ca2ec3ee70d24390a6225c8832db8a4c814c7e0e7f942f8668',
    );
  });
});

test('text made storable is well formed, without NUL, and no longer than asked', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 50 }), (text, max) => {
      const stored = storableText(text, max);
      expect(textProblem(stored)).toBeNull();
      expect(stored.length).toBeLessThanOrEqual(max);
    }),
  );
});

test('a path says where: identifiers by dot, positions and odd names in brackets', () => {
  expect(memberPath('input', 'rows')).toBe('input.rows');
  expect(memberPath('input.rows', 3)).toBe('input.rows[3]');
  expect(memberPath('input', 'first name')).toBe('input["first name"]');
});
