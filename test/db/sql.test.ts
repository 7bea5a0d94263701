import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { pgArray, pgTextArray } from '../../src/db/sql.ts';
import { databases, type TestDatabase } from '../support/database.ts';

/** Postgres refuses NUL, and a lone surrogate is no Unicode; both are refused or cleaned before they get here. */
const text = fc.string({ unit: 'binary', maxLength: 20 }).map((s) => s.replaceAll('\0', '').toWellFormed());
const awkward = fc.constantFrom(
  '',
  'NULL',
  'null',
  '{}',
  '{a,b}',
  '"',
  '\\',
  '\\"',
  ',',
  ' a ',
  "'",
  '\n',
  '😀',
  '{"a":"b\\\\c"}',
);

describe.each(databases())('array literals on $name', ({ open }) => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await open();
  });
  const roundTrip = async (literal: string, type: string) =>
    (await db.read.query<{ list: unknown[] }>(`select $1::${type}[] as list`, [literal]))[0]?.list;

  test('a list of any texts comes back as it went in', async () => {
    const list = fc.array(fc.oneof(text, awkward, fc.constant(null)), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(list, async (values) => {
        const [row] = await db.read.query<{ list: unknown }>(`select to_json($1::text[]) as list`, [
          pgTextArray(values),
        ]);
        expect(row?.list).toEqual(values);
      }),
      { numRuns: 200 },
    );
  });

  test('a list of numbers, booleans or ids comes back as it went in', async () => {
    const id = '0190f3a4-7c5e-7000-8000-0123456789ab';
    expect(await roundTrip(pgArray([1, null, -2]), 'int')).toEqual([1, null, -2]);
    expect(await roundTrip(pgArray([9_007_199_254_740_991, 0]), 'bigint')).toEqual([9_007_199_254_740_991, 0]);
    expect(await roundTrip(pgArray([0.1, 1e300, -1e-7]), 'float8')).toEqual([0.1, 1e300, -1e-7]);
    expect(await roundTrip(pgArray([true, false, null]), 'boolean')).toEqual([true, false, null]);
    expect(await roundTrip(pgArray([id, null]), 'uuid')).toEqual([id, null]);
    expect(await roundTrip(pgArray(['null', 'a b', '{x}']), 'text')).toEqual(['null', 'a b', '{x}']);
    expect(await roundTrip(pgArray([]), 'int')).toEqual([]);
  });
});
