import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { Unavailable } from '../../src/core/errors.ts';
import type { Tx } from '../../src/db/types.ts';
import { databases, describePostgres, type TestDatabase } from '../support/database.ts';
import { deferred, within } from '../support/eventually.ts';

const raise = (state: string) => `do $$ begin raise sqlstate '${state}'; end $$`;

describe.each(databases())('transactions on $name', ({ open }) => {
  let db: TestDatabase;
  beforeEach(async () => {
    db = await open();
    await db.work.query('create table public.notes (n int primary key)');
  });
  const notes = async () =>
    (await db.read.query<{ n: number }>('select n from public.notes order by n')).map((r) => r.n);
  const insert = (tx: Tx, n: number) => tx.query('insert into public.notes values ($1)', [n]);

  test('what it wrote is there after it, and its value is returned', async () => {
    const done = db.work.transaction(async (tx) => {
      await insert(tx, 1);
      return 'value';
    });
    expect(await done).toBe('value');
    expect(await notes()).toEqual([1]);
  });

  test('a throw takes everything back and is thrown on as it is', async () => {
    const error = Object.assign(new Error('mine'), { code: 'ECONNREFUSED' });
    const failed = db.work.transaction(async (tx) => {
      await insert(tx, 1);
      throw error;
    });
    await expect(failed).rejects.toBe(error);
    expect(await notes()).toEqual([]);
  });

  test.each(['40P01', '40001'])('%s repeats the whole function, and only the last run is kept', async (state) => {
    let runs = 0;
    await db.work.transaction(async (tx) => {
      runs++;
      await insert(tx, runs);
      if (runs < 4) await tx.query(raise(state));
    });
    expect(runs).toBe(4);
    expect(await notes()).toEqual([4]);
  });

  test('the repeats are bounded, and can be refused', async () => {
    let runs = 0;
    const conflict = (tx: Tx) => {
      runs++;
      return tx.query(raise('40001'));
    };
    await expect(db.work.transaction(conflict)).rejects.toMatchObject({ code: '40001' });
    expect(runs).toBe(5);
    await expect(db.work.transaction(conflict, { retry: false })).rejects.toMatchObject({ code: '40001' });
    expect(runs).toBe(6);
  });

  test('a failed statement whose failure was hidden fails the transaction: nothing is kept, nothing pretended', async () => {
    const hidden = db.work.transaction(async (tx) => {
      await insert(tx, 1);
      await insert(tx, 1).catch(() => {});
      return 'done';
    });
    await expect(hidden).rejects.toMatchObject({ code: '23505' });
    expect(await notes()).toEqual([]);
    expect(await db.work.query('select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('a statement after the end is refused', async () => {
    let late: Tx | undefined;
    await db.work.transaction(async (tx) => {
      late = tx;
    });
    await expect(late?.query('select 1')).rejects.toThrow('this transaction has ended');
    await expect(late?.user.execute('select 1')).rejects.toMatchObject({
      cause: { message: 'this transaction has ended' },
    });
  });

  test('a transaction that is still open after its time is rolled back, whatever it waits for', async () => {
    const forever = deferred();
    const slow = db.work.transaction(
      async (tx) => {
        await insert(tx, 1);
        await forever.promise;
      },
      { timeoutMs: 200 },
    );
    await expect(within(5_000, slow, 'the end of the transaction')).rejects.toThrow(/not finished after 200 ms/);
    await expect(slow).rejects.toBeInstanceOf(Unavailable);
    expect(await notes()).toEqual([]);
  });

  test('a prepared statement whose table got another column is prepared anew', async () => {
    const read = () => db.beat.transaction((tx) => tx.query('select * from public.notes where n > $1', [0]));
    await db.work.query('insert into public.notes values (1)');
    expect(await read()).toEqual([{ n: 1 }]);
    await db.work.query(`alter table public.notes add column more text default 'x'`);
    expect(await read()).toEqual([{ n: 1, more: 'x' }]);
    expect(await db.beat.query('select * from public.notes where n > $1', [0])).toEqual([{ n: 1, more: 'x' }]);
  });

  test('transactions at the same time each keep their own', async () => {
    const add = (n: number) =>
      db.work.transaction(async (tx) => {
        await insert(tx, n);
        await sleep(n % 3);
        if (n % 5 === 0) throw new Error('odd one out');
      });
    await Promise.allSettled(Array.from({ length: 40 }, (_, n) => add(n)));
    expect(await notes()).toEqual(Array.from({ length: 40 }, (_, n) => n).filter((n) => n % 5 !== 0));
  });
});

describePostgres('transactions of several connections', ({ open }) => {
  test('of two that deadlock, both succeed in the end', async () => {
    const db = await open();
    await db.work.query(
      `set deadlock_timeout = '50ms'; create table public.t (id int, n int); insert into public.t values (1, 0), (2, 0)`,
    );
    const met = deferred();
    let inside = 0;
    const add = (first: number, second: number) =>
      db.work.transaction(async (tx) => {
        await tx.query('update public.t set n = n + 1 where id = $1', [first]);
        if (++inside >= 2) met.resolve();
        await met.promise;
        await tx.query('update public.t set n = n + 1 where id = $1', [second]);
      });
    await Promise.all([add(1, 2), add(2, 1)]);
    expect(inside).toBeGreaterThan(2);
    expect(await db.read.query('select n from public.t')).toEqual([{ n: 2 }, { n: 2 }]);
  });

  test('a connection that the server ends in the middle fails it at once; later statements never reach another', async () => {
    const db = await open();
    await db.work.query('create table public.notes (n int primary key)');
    const killed = deferred();
    let after: unknown;
    const ended = db.work.transaction(async (tx) => {
      const [me] = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
      await tx.query('insert into public.notes values (1)');
      killed.resolve();
      await stopped.promise;
      after = await tx.query('insert into public.notes values (2)').catch((error: unknown) => error);
      return me;
    });
    // It may fail before the statement that ends it is answered.
    ended.catch(() => {});
    const stopped = deferred();
    await killed.promise;
    await db.maintenance.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'waymark work' and state = 'idle in transaction'
       and datname = current_database()`,
    );
    await expect(within(5_000, ended, 'the failure')).rejects.toBeInstanceOf(Unavailable);
    stopped.resolve();
    await expect.poll(() => after).toBeInstanceOf(Unavailable);
    expect(await db.read.query('select n from public.notes')).toEqual([]);
  });

  test.each([true, false])('one that stands still gives its locks back in time (prepare %s)', async (prepare) => {
    const db = await open({ idleMs: 300, prepare });
    await db.work.query('create table public.notes (n int primary key); insert into public.notes values (1)');
    for (const purpose of ['submit', 'work', 'maintenance'] as const) {
      const locked = deferred();
      const goOn = deferred();
      const still = db[purpose].transaction(async (tx) => {
        await tx.query('select 1 from public.notes for update');
        locked.resolve();
        await goOn.promise;
        return tx.query('insert into public.notes values (2)');
      });
      still.catch(() => {});
      await locked.promise;
      await within(5_000, db.beat.query('select 1 from public.notes for update'), `the lock of ${purpose}`);
      goOn.resolve();
      await expect(still).rejects.toBeInstanceOf(Unavailable);
    }
    expect(await db.read.query('select n from public.notes')).toEqual([{ n: 1 }]);
  });
});
