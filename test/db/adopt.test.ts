import { PGlite } from '@electric-sql/pglite';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres, { type Sql } from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { adopt } from '../../src/db/adopt.ts';
import { isUniqueViolation } from '../../src/db/errors.ts';
import type { Executor } from '../../src/db/types.ts';
import { databases, describePostgres, embeddedTemplate, type TestDatabase } from '../support/database.ts';

const JSON_TEXT = '{"a":[1,"x",null]}';
const STATEMENT = `
  insert into public.docs (id, j, b) values ($1, $2::text::json, $2::text::jsonb)
  returning id, j, b, json_typeof(j) as type, 5::bigint as n, $3::timestamptz as at, $3::text as same, null::json as none`;
const AT = '2026-03-04 05:06:07.123+00';
const ROW = {
  id: 1,
  j: { a: [1, 'x', null] },
  b: { a: [1, 'x', null] },
  type: 'object',
  n: 5,
  at: AT,
  same: AT,
  none: null,
};
const TABLE = 'create table public.docs (id int primary key, j json, b jsonb)';

const insert = (tx: Executor, id = 1) => tx.query(STATEMENT, [id, JSON_TEXT, AT]);

describePostgres("a caller's own transaction on Postgres", ({ open }) => {
  let db: TestDatabase;
  let users: Sql;
  beforeEach(async () => {
    db = await open();
    await db.work.query(TABLE);
    users = postgres(db.url as string, { max: 2, onnotice: () => {} });
    return () => users.end();
  });
  const stored = () => db.read.query('select id, j from public.docs order by id');

  test('of postgres.js: the rows are as from a handle of Waymark, and share its fate', async () => {
    expect(await users.begin((tx) => insert(adopt(tx)))).toEqual([ROW]);
    const failed = users.begin(async (tx) => {
      await insert(adopt(tx), 2);
      throw new Error('back');
    });
    await expect(failed).rejects.toThrow('back');
    expect(await stored()).toEqual([{ id: 1, j: ROW.j }]);
  });

  test("a savepoint of postgres.js too, and the client still works as the user's own afterwards", async () => {
    await users.begin(async (tx) => {
      await tx.savepoint((inner) => insert(adopt(inner)));
    });
    expect(await stored()).toHaveLength(1);
    const [row] = await users`select ${users.json({ plain: 'object' })}::jsonb as j, now() as at`;
    expect(row?.j).toEqual({ plain: 'object' });
    expect(row?.at).toBeInstanceOf(Date);
  });

  test('of Drizzle over postgres.js, also nested', async () => {
    const orm = drizzle({ client: users });
    expect(await orm.transaction((tx) => insert(adopt(tx)))).toEqual([ROW]);
    await orm.transaction((tx) => tx.transaction((inner) => insert(adopt(inner), 2)));
    const failed = orm.transaction(async (tx) => {
      await insert(adopt(tx), 3);
      tx.rollback();
    });
    await expect(failed).rejects.toThrow();
    expect(await stored()).toHaveLength(2);
  });

  test('a failed statement is told as the database told it', async () => {
    for (const orm of [users, drizzle({ client: users })]) {
      const twice = async (tx: unknown) => {
        await insert(adopt(tx));
        await insert(adopt(tx));
      };
      const failed = 'begin' in orm ? orm.begin(twice) : orm.transaction(twice);
      expect(
        isUniqueViolation(
          await failed.then(
            () => undefined,
            (error) => error,
          ),
          'docs_pkey',
        ),
      ).toBe(true);
    }
  });

  test('what is no transaction is refused with the names of what is accepted', () => {
    for (const other of [users, drizzle({ client: users }), {}, null, undefined, 'tx', () => {}]) {
      expect(() => adopt(other)).toThrow(/Drizzle transaction or a postgres.js transaction/);
    }
  });
});

describe('a Drizzle transaction over PGlite', () => {
  let client: PGlite;
  beforeAll(async () => {
    client = await PGlite.create({ loadDataDir: await embeddedTemplate() });
    await client.exec(TABLE);
  });
  afterAll(() => client.close());

  test('is used as it is', async () => {
    const orm = drizzlePglite({ client });
    expect(await orm.transaction((tx) => insert(adopt(tx)))).toEqual([ROW]);
  });
});

describe.each(databases())("Waymark's own transaction on $name", ({ open }) => {
  test('and the Drizzle in it are accepted too', async () => {
    const db = await open();
    await db.work.query(TABLE);
    const rows = await db.work.transaction(async (tx) => [
      ...(await insert(db.adopt(tx.user), 1)),
      ...(await tx.user.transaction((inner) => insert(db.adopt(inner), 2))),
      ...(await insert(db.adopt(tx), 3)),
    ]);
    expect(rows).toEqual([ROW, { ...ROW, id: 2 }, { ...ROW, id: 3 }]);
  });
});
