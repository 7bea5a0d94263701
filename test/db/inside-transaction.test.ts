import { beforeEach, describe, expect, test } from 'vitest';
import { InsideTransaction } from '../../src/core/errors.ts';
import { outsideTransaction } from '../../src/db/inside-transaction.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { deferred, within } from '../support/eventually.ts';

describe.each(databases())('inside an open transaction on $name', ({ open }) => {
  let db: TestDatabase;
  beforeEach(async () => {
    db = await open();
  });

  test('whatever does not use it is refused at once, also a few calls further down', async () => {
    const deeper = async (call: () => Promise<unknown>) => {
      await Promise.resolve();
      return call();
    };
    await db.work.transaction(async (tx) => {
      for (const call of [
        () => db.work.query('select 1'),
        () => db.read.query('select 1'),
        () => db.submit.transaction(async () => {}),
        () => db.work.user.execute('select 1'),
        () => db.work.user.transaction(async () => {}),
      ]) {
        await expect(within(1_000, deeper(call))).rejects.toBeInstanceOf(InsideTransaction);
      }
      expect(await tx.query('select 1 as one')).toEqual([{ one: 1 }]);
    });
  });

  test("the same holds in the user's own Drizzle transaction", async () => {
    await db.work.user.transaction(async (tx) => {
      await expect(within(1_000, db.work.query('select 1'))).rejects.toBeInstanceOf(InsideTransaction);
      await tx.execute('select 1');
    });
  });

  test('what was started inside may go on once the transaction has ended', async () => {
    const ended = deferred();
    let later: Promise<unknown> | undefined;
    await db.work.transaction(async () => {
      later = ended.promise.then(() => db.work.query('select 1 as one'));
    });
    ended.resolve();
    expect(await later).toEqual([{ one: 1 }]);
  });

  test('what runs beside it is not refused, but waits or uses another connection', async () => {
    const inside = deferred();
    const go = deferred();
    const open = db.work.transaction(async () => {
      inside.resolve();
      await go.promise;
    });
    await inside.promise;
    const beside = db.work.query('select 1 as one');
    go.resolve();
    expect(await within(5_000, beside)).toEqual([{ one: 1 }]);
    await open;
  });

  test('a loop that is started inside can be taken out of it', async () => {
    let beside: Promise<unknown> | undefined;
    await db.work.transaction(async () => {
      beside = outsideTransaction(() => db.work.query('select 1 as one'));
    });
    expect(await beside).toEqual([{ one: 1 }]);
  });
});
