import { count, eq, sql } from 'drizzle-orm';
import { bigint, integer, json, jsonb, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { beforeEach, describe, expect, test } from 'vitest';
import { databases, type TestDatabase } from '../support/database.ts';

const items = pgTable('items', {
  id: integer('id').primaryKey(),
  doc: jsonb('doc'),
  plain: json('plain'),
  big: bigint('big', { mode: 'bigint' }),
  small: bigint('small', { mode: 'number' }),
  at: timestamp('at', { withTimezone: true }),
  atText: timestamp('at_text', { withTimezone: true, mode: 'string' }),
  tags: text('tags').array(),
});
const parts = pgTable('parts', { id: integer('id').primaryKey(), itemId: integer('item_id'), name: text('name') });

describe.each(databases())("the user's Drizzle on $name", ({ open }) => {
  let db: TestDatabase;
  beforeEach(async () => {
    db = await open();
    await db.work.query(`
      create table public.items (id int primary key, doc jsonb, plain json, big bigint, small bigint, at timestamptz,
                                 at_text timestamptz, tags text[]);
      create table public.parts (id int primary key, item_id int, name text)`);
  });

  test('a row comes back as it was given, each type by its column', async () => {
    const row = {
      id: 1,
      doc: { a: [1, { b: null }] },
      plain: [1, 'x'],
      big: 9_223_372_036_854_775_807n,
      small: 42,
      at: new Date('2026-01-02T03:04:05.678Z'),
      atText: '2026-01-02 03:04:05.123456+00',
      tags: ['a', 'b,"c\\'],
    };
    await db.work.user.insert(items).values(row);
    expect(await db.work.user.select().from(items)).toEqual([row]);
  });

  test.each(['123', 'true', 'null', '{"a":1}', 'text'])('a JSON string stays a string: %j', async (value) => {
    await db.work.user.insert(items).values({ id: 1, doc: value, plain: value });
    const selected = await db.work.user.select({ doc: items.doc, plain: items.plain }).from(items);
    expect(selected).toEqual([{ doc: value, plain: value }]);
    expect(await db.work.query('select jsonb_typeof(doc) as type from public.items')).toEqual([{ type: 'string' }]);
  });

  test('JSON and counts of an expression are read too', async () => {
    await db.work.user.insert(items).values([{ id: 1 }, { id: 2 }]);
    const [row] = await db.work.user
      .select({ n: sql<number>`count(*)`, m: count(), j: sql`json_agg(${items.id})`, s: sql`to_json('7'::text)` })
      .from(items);
    expect(row).toEqual({ n: 2, m: 2, j: [1, 2], s: '7' });
    expect(await db.work.user.$count(items)).toBe(2);
  });

  test('a plain object as a parameter of a raw statement works', async () => {
    const [row] = (await db.work.user.execute(sql`select jsonb_typeof(${{ a: 1 }}::jsonb) as t`)) as { t: string }[];
    expect(row).toEqual({ t: 'object' });
  });

  test('the rows of a raw statement are an array that also has `rows`, with the same values on both stores', async () => {
    const result = await db.work.user.execute(
      sql`select 5::bigint as n, '{"a":1}'::jsonb as j, '2026-01-02 03:04:05.123456+00'::timestamptz as at, array[1, null] as a`,
    );
    const rows = [{ n: 5, j: { a: 1 }, at: '2026-01-02 03:04:05.123456+00', a: [1, null] }];
    expect(result).toEqual(rows);
    expect((result as { rows?: unknown }).rows).toEqual(rows);
    expect(Array.isArray(result)).toBe(true);
  });

  test('a left join without a partner gives null for the whole side', async () => {
    await db.work.user.insert(items).values({ id: 1 });
    const [row] = await db.work.user.select().from(items).leftJoin(parts, eq(parts.itemId, items.id));
    expect(row?.parts).toBeNull();
    expect(row?.items.id).toBe(1);
  });

  test('a failed statement is a DrizzleQueryError with the database error as its cause', async () => {
    await db.work.user.insert(items).values({ id: 1 });
    await expect(db.work.user.insert(items).values({ id: 1 })).rejects.toMatchObject({
      name: 'Error',
      query: expect.stringContaining('insert into'),
      cause: { code: '23505' },
    });
  });

  test("inside a transaction it sees and shares the transaction's fate", async () => {
    const failed = db.work.transaction(async (tx) => {
      await tx.query('insert into public.items (id) values (1)');
      await tx.user.insert(items).values({ id: 2 });
      expect(await tx.user.$count(items)).toBe(2);
      throw new Error('back');
    });
    await expect(failed).rejects.toThrow('back');
    expect(await db.work.user.$count(items)).toBe(0);
  });

  test('a nested transaction is a savepoint: its failure takes back its own writes only', async () => {
    await db.work.transaction(async (tx) => {
      await tx.user.insert(items).values({ id: 1 });
      const nested = tx.user.transaction(async (inner) => {
        await inner.insert(items).values({ id: 2 });
        await inner.insert(items).values({ id: 2 });
      });
      await expect(nested).rejects.toMatchObject({ cause: { code: '23505' } });
      await tx.user.transaction(async (inner) => {
        await inner.insert(items).values({ id: 3 });
        await expect(inner.transaction(async (deep) => deep.rollback())).rejects.toThrow('Rollback');
      });
    });
    expect(await db.work.user.select({ id: items.id }).from(items).orderBy(items.id)).toEqual([{ id: 1 }, { id: 3 }]);
  });

  test('a failure hidden inside a savepoint fails the savepoint, not the transaction around it', async () => {
    await db.work.transaction(async (tx) => {
      await tx.user.insert(items).values({ id: 1 });
      const nested = tx.user.transaction(async (inner) => {
        await inner.insert(items).values({ id: 2 });
        await inner
          .insert(items)
          .values({ id: 1 })
          .catch(() => {});
      });
      await expect(nested).rejects.toThrow();
    });
    expect(await db.work.user.select({ id: items.id }).from(items)).toEqual([{ id: 1 }]);
  });

  test('its own transaction works, with its settings, and is run once', async () => {
    let runs = 0;
    const serializable = db.work.user.transaction(
      async (tx) => {
        runs++;
        await tx.insert(items).values({ id: 1 });
        const [level] = (await tx.execute(sql`show transaction isolation level`)) as Record<string, string>[];
        return level?.transaction_isolation;
      },
      { isolationLevel: 'serializable' },
    );
    expect(await serializable).toBe('serializable');
    const conflict = db.work.user.transaction(async (tx) => {
      runs++;
      await tx.execute(sql`do $$ begin raise sqlstate '40001'; end $$`);
    });
    await expect(conflict).rejects.toMatchObject({ cause: { code: '40001' } });
    expect(runs).toBe(2);
    expect(await db.work.user.$count(items)).toBe(1);
  });

  test('prepared statements with placeholders work', async () => {
    await db.work.user.insert(items).values([{ id: 1 }, { id: 2 }]);
    const byId = db.work.user
      .select({ id: items.id })
      .from(items)
      .where(eq(items.id, sql.placeholder('id')))
      .prepare('by_id');
    expect(await byId.execute({ id: 2 })).toEqual([{ id: 2 }]);
    expect(await byId.execute({ id: 1 })).toEqual([{ id: 1 }]);
  });
});
