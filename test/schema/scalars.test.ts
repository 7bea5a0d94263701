import fc from 'fast-check';
import { parseValue as parseLiteralNode } from 'graphql';
import { describe, expect, test } from 'vitest';
import {
  jsonLiteral,
  parseDateTime,
  parseDurationValue,
  serializeDateTime,
  serializeDuration,
} from '../../src/schema/scalar-values.ts';

const pad = (n: number, length = 2) => String(n).padStart(length, '0');

describe('DateTime', () => {
  const moments = fc.date({
    min: new Date('0001-01-02T00:00:00Z'),
    max: new Date('9999-12-30T00:00:00Z'),
    noInvalidDate: true,
  });

  test('any zone gives the same instant in UTC with milliseconds', () => {
    fc.assert(
      fc.property(moments, fc.integer({ min: -14 * 60, max: 14 * 60 }), (moment, offset) => {
        const local = new Date(moment.getTime() + offset * 60_000).toISOString().slice(0, -1);
        const zone = `${offset < 0 ? '-' : '+'}${pad(Math.floor(Math.abs(offset) / 60))}:${pad(Math.abs(offset) % 60)}`;
        expect(parseDateTime(local + zone)).toBe(moment.toISOString());
      }),
    );
  });

  test('what Postgres prints is given to the millisecond, with Z', () => {
    fc.assert(
      fc.property(moments, fc.integer({ min: 0, max: 999 }), (moment, micros) => {
        const printed = `${moment.toISOString().replace('T', ' ').slice(0, -1)}${pad(micros, 3)}+00`;
        expect(serializeDateTime(printed)).toBe(moment.toISOString());
      }),
    );
  });

  test('it gives back what it is given', () => {
    fc.assert(
      fc.property(moments, (moment) => {
        expect(serializeDateTime(parseDateTime(moment.toISOString()))).toBe(moment.toISOString());
      }),
    );
  });

  test.each([
    ['no zone', '2026-11-29T16:02:52'],
    ['no time', '2026-11-29'],
    ['a space for the T', '2026-11-29 16:02:52Z'],
    ['a day that does not exist', '2026-02-30T00:00:00Z'],
    ['a leap day of no leap year', '2025-02-29T00:00:00Z'],
    ['hour 24', '2026-11-29T24:00:00Z'],
    ['a leap second', '2016-12-31T23:59:60Z'],
    ['a year beyond 9999', '10000-01-01T00:00:00Z'],
    ['a signed year', '+012026-01-01T00:00:00Z'],
    ['the year 0', '0000-06-01T00:00:00Z'],
    ['a zone that carries it beyond 9999', '9999-12-31T23:59:59-05:00'],
    ['infinity', 'infinity'],
    ['junk', 'tomorrow'],
    ['nothing', ''],
    ['a number', 1_764_432_172_123],
    ['a zone out of range', '2026-11-29T16:02:52+24:00'],
    ['a date object', new Date()],
    ['null', null],
  ])('refuses %s as BAD_USER_INPUT', (_, value) => {
    expect(() => parseDateTime(value)).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(/^DateTime must/),
        extensions: { code: 'BAD_USER_INPUT' },
      }),
    );
  });
});

describe('Duration', () => {
  test('whatever it prints it can read again', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 36_525 * 86_400_000 }), (ms) => {
        expect(parseDurationValue(serializeDuration(ms))).toBe(ms);
      }),
    );
  });

  test.each([
    ['-5s'],
    ['5'],
    ['5 s'],
    ['5S'],
    ['1h30m'],
    ['infinite'],
    [''],
    ['1e3s'],
    ['99999999999d'],
    [5_000],
    [null],
  ])('refuses %j', (value) => {
    expect(() => parseDurationValue(value)).toThrow(
      expect.objectContaining({ extensions: { code: 'BAD_USER_INPUT' } }),
    );
  });
});

describe('a JSON value written in the document', () => {
  /** GraphQL's own notation of a JSON value. */
  function literal(value: unknown): string {
    if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
    if (typeof value !== 'object' || value === null) return JSON.stringify(value);
    return `{${Object.entries(value)
      .map(([key, child]) => `${key}: ${literal(child)}`)
      .join(', ')}}`;
  }
  const parse = (text: string, variables?: Record<string, unknown>) => jsonLiteral(parseLiteralNode(text), variables);

  const { value: values } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.string(),
      fc.boolean(),
      fc.constant(null),
      fc.maxSafeInteger(),
      fc.constantFrom(2 ** 53, 1e20, -(2 ** 60)),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.stringMatching(/^[_A-Za-z][_0-9A-Za-z]{0,8}$/), tie('value'), { maxKeys: 4 }),
    ),
  }));

  test('is the same as the value in a variable', () => {
    fc.assert(
      fc.property(values, (value) => {
        const parsed = parse(literal(value));
        expect(JSON.stringify(parsed)).toBe(JSON.stringify(value));
      }),
    );
  });

  test('is made of plain objects, also inside', () => {
    const parsed = parse('{ a: [{ b: {} }] }') as { a: { b: object }[] };
    for (const object of [parsed, parsed.a[0], parsed.a[0]?.b]) {
      expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
    }
  });

  test('keeps a field called __proto__ as a field', () => {
    const parsed = parse('{ __proto__: { admin: true } }') as Record<string, unknown>;
    expect(Object.keys(parsed)).toEqual(['__proto__']);
    expect(parsed.admin).toBeUndefined();
  });

  test('takes variables inside; a field whose variable is not given is left out', () => {
    expect(parse('{ a: $x, b: $y, c: [$y] }', { x: { deep: 1 } })).toEqual({ a: { deep: 1 }, c: [null] });
  });

  test.each([
    ['{ rows: [1, 9007199254740993] }', /rows\[1\]: 9007199254740993 is beyond 2\^53/],
    ['-9007199254740993', /beyond 2\^53/],
    ['1e999', /beyond the range of a double/],
    ['{ a: RED }', /a: RED is no JSON value/],
  ])('refuses %s', (text, message) => {
    expect(() => parse(text)).toThrow(
      expect.objectContaining({ message: expect.stringMatching(message), extensions: { code: 'BAD_USER_INPUT' } }),
    );
  });
});
