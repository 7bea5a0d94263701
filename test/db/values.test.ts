import { beforeAll, describe, expect, test } from 'vitest';
import { databases, type TestDatabase } from '../support/database.ts';

describe.each(databases())('values on $name', ({ open }) => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await open();
    await db.work.query('create table public.docs (id int primary key, j json, b jsonb)');
  });
  const one = async (text: string, params: (string | number | boolean | null)[] = []) => {
    const [row] = await db.work.query<Record<string, unknown>>(`select ${text}`, params);
    return row;
  };

  test.each([
    ['object', { a: 1, nested: { list: [1, 'x', null, { deep: true }] } }],
    ['array', [1, 'two', [3]]],
    ['string', 'text'],
    ['string', '{"looks":"like json"}'],
    ['string', '123'],
    ['string', 'a "quote", a \\ and 😀'],
    ['number', 12.5],
    ['boolean', false],
    ['null', null],
    ['array', []],
    ['object', {}],
  ])('a JSON %s is stored as what it is and comes back equal: %j', async (type, value) => {
    const text = JSON.stringify(value);
    await db.work.query(
      `insert into public.docs values (1, $1::text::json, $1::text::jsonb)
       on conflict (id) do update set j = excluded.j, b = excluded.b`,
      [text],
    );
    const rows = await db.work.query('select j, b, json_typeof(j) as tj, jsonb_typeof(b) as tb from public.docs');
    expect(rows).toEqual([{ j: value, b: value, tj: type, tb: type }]);
  });

  test('JSON text is not made a JSON string, however the parameter is cast', async () => {
    expect(await one('json_typeof($1::json) as a, json_typeof($2::text::json) as b', ['{"a":1}', '[1]'])).toEqual({
      a: 'object',
      b: 'array',
    });
  });

  test('JSON null is a value; SQL null is none', async () => {
    expect(await one(`'null'::json is null as a, null::json is null as b, 'null'::json as c`)).toEqual({
      a: false,
      b: true,
      c: null,
    });
  });

  test('a timestamp is text in UTC, keeps its microseconds, and can be compared with itself', async () => {
    const at = '2026-03-04 05:06:07.123456+00';
    expect(await one(`$1::timestamptz as at, $1::timestamptz = '${at}'::timestamptz as same`, [at])).toEqual({
      at,
      same: true,
    });
    expect(await one(`'2026-03-04 10:51:07.000001+05:45'::timestamptz as at`)).toEqual({
      at: '2026-03-04 05:06:07.000001+00',
    });
    expect(
      await one(`'infinity'::timestamptz as a, '2026-03-04'::date as b, '2026-03-04 01:02:03'::timestamp as c`),
    ).toEqual({
      a: 'infinity',
      b: '2026-03-04',
      c: '2026-03-04 01:02:03',
    });
  });

  test('bigint is a number, numeric a text, boolean a boolean, null null', async () => {
    expect(
      await one(
        `9007199254740991::bigint as a, count(*) as n, 1.10::numeric as b, true as c, null as d, 0.5::float8 as e`,
      ),
    ).toEqual({
      a: 9_007_199_254_740_991,
      n: 1,
      b: '1.10',
      c: true,
      d: null,
      e: 0.5,
    });
  });

  test('numbers, booleans and nulls go where their type is not named', async () => {
    await db.work.query('create table if not exists public.mixed (i int, f float8, b boolean, t text, at timestamptz)');
    await db.work.query('insert into public.mixed values ($1, $2, $3, $4, $5)', [5, 0.25, true, 'x', null]);
    await db.work.query('update public.mixed set b = $1, i = $2 where i = $3', [false, null, 5]);
    expect(await db.work.query('select * from public.mixed')).toEqual([
      { i: null, f: 0.25, b: false, t: 'x', at: null },
    ]);
  });

  test('arrays are arrays, their nulls null, nested ones nested', async () => {
    expect(
      await one(
        `'{1,NULL}'::int[] as i, '{a,NULL,"NULL","b \\"c\\\\"}'::text[] as t, '{5}'::bigint[] as n, '{t,f}'::bool[] as b,
         array['{"a":1}', 'null']::json[] as j, '{{1,2},{3,4}}'::int[] as m, '{}'::text[] as e`,
      ),
    ).toEqual({
      i: [1, null],
      t: ['a', null, 'NULL', 'b "c\\'],
      n: [5],
      b: [true, false],
      j: [{ a: 1 }, null],
      m: [
        [1, 2],
        [3, 4],
      ],
      e: [],
    });
  });

  test('of two columns with one name the last is given', async () => {
    expect(await one(`'"1"'::json as x, '"\\"2\\""'::json as x`)).toEqual({ x: '"2"' });
  });

  test('several statements without parameters run in order; the rows are those of the last', async () => {
    expect(await db.work.query(`select 1 as a; select '{"b":2}'::json as b, 3::bigint as c`)).toEqual([
      { b: { b: 2 }, c: 3 },
    ]);
    expect(await db.work.query('insert into public.docs (id) values (7)')).toEqual([]);
  });
});
