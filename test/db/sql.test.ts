import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { column, jsonColumn, jsonColumnSql, pgArray, pgTextArray, textColumn } from '../../src/db/sql.ts';
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

  test('columns that travel beside each other come back row by row, whatever is null in them', async () => {
    const json = fc
      .oneof(fc.json(), fc.constantFrom('"\\u001e"', 'null', '""'))
      .map((t) => t.replaceAll('\\u0000', ''));
    const rows = fc.array(
      fc.record({
        text: fc.oneof(text, awkward, fc.constant(null)),
        number: fc.oneof(fc.integer(), fc.constant(null)),
        json: fc.oneof(json, fc.constant(null)),
      }),
      { minLength: 1, maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(rows, async (given) => {
        const got = await db.read.query(
          `select x.text, x.number, x.json from unnest($1::int[], $2::text[], $3::bigint[], ${jsonColumnSql('$4')})
           as x(n, text, number, json) order by x.n`,
          [
            pgArray(given.map((_, n) => n)),
            textColumn(given.map((row) => row.text)),
            column(given.map((row) => row.number)),
            jsonColumn(given.map((row) => row.json)),
          ],
        );
        expect(got).toEqual(given);
      }),
      { numRuns: 200 },
    );
  });
});
