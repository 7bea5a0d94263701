import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { Unavailable } from '../../src/core/errors.ts';
import { type OpenDatabase, type OpenOptions, openDatabase } from '../../src/db/open.ts';
import { startProxy, type Proxy as TcpProxy } from '../events/redis-server.ts';
import { createPostgresDatabase, describePostgres, type TestDatabase } from '../support/database.ts';
import { deferred, eventually, within } from '../support/eventually.ts';
import { freePort } from '../support/local-servers.ts';

async function openAt(url: string, options: Omit<OpenOptions, 'url'> = {}): Promise<OpenDatabase> {
  const database = await openDatabase({ url, ...options });
  onTestFinished(() => database.close());
  return database;
}

describePostgres('the handles on Postgres', ({ open }) => {
  let db: TestDatabase;
  beforeEach(async () => {
    db = await open();
  });

  test('each has connections of its own, named by purpose, in UTC whatever the database says', async () => {
    await db.work.query(
      `do $$ begin execute format('alter database %I set timezone to ''Asia/Kathmandu''', current_database()); end $$`,
    );
    const other = await openAt(db.url as string, { applicationName: 'mine' });
    for (const purpose of ['submit', 'work', 'beat', 'read', 'maintenance'] as const) {
      const [row] = await other[purpose].query(
        `select current_setting('application_name') as name, current_setting('timezone') as zone`,
      );
      expect(row).toEqual({ name: `mine ${purpose}`, zone: 'UTC' });
    }
    const [user] = (await other.work.user.execute(`select current_setting('application_name') as name`)) as unknown[];
    expect(user).toEqual({ name: 'mine user' });
  });

  test.each([{ prepare: true }, { prepare: false }])(
    'the read handle cannot write, and stops what takes too long: %j',
    async (options) => {
      const other = await openAt(db.url as string, { ...options, answerMs: { read: 300 } });
      await expect(other.read.query('create table public.t (n int)')).rejects.toMatchObject({ code: '25006' });
      await expect(other.read.query('delete from waymark.jobs where $1', [true])).rejects.toMatchObject({
        code: '25006',
      });
      const slow = other.read.query('select pg_sleep($1)', [30]);
      await expect(within(5_000, slow)).rejects.toMatchObject({ code: 'UNAVAILABLE', cause: { code: '57014' } });
      expect(await other.read.query('select 1 as one')).toEqual([{ one: 1 }]);
    },
  );

  test('a read whose connection is cut is read again, and a write is told to its caller', async () => {
    const other = await openAt(db.url as string, { applicationName: 'cut' });
    // Waits for a lock that this test holds, so that it is under way for as long as it takes to cut it.
    const waiting = (purpose: 'read' | 'work') =>
      other[purpose].query(`select 'here' as answer from pg_advisory_xact_lock_shared($1)`, [7]);
    const cut = (purpose: 'read' | 'work') =>
      eventually(async () => {
        const rows = await db.maintenance.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and application_name = $1 and wait_event = 'advisory'`,
          [`cut ${purpose}`],
        );
        expect(rows).toHaveLength(1);
      });
    const whileLocked = async (work: () => Promise<unknown>) => {
      const locked = deferred();
      const release = deferred();
      const held = db.work.transaction(async (tx) => {
        await tx.query('select pg_advisory_xact_lock(7)');
        locked.resolve();
        await release.promise;
      });
      await locked.promise;
      await work().finally(release.resolve);
      await held;
    };
    for (let round = 0; round < 5; round++) {
      let read: Promise<unknown> | undefined;
      await whileLocked(() => {
        read = waiting('read');
        return cut('read');
      });
      expect(await read).toEqual([{ answer: 'here' }]);
    }
    await whileLocked(async () => {
      const written = waiting('work');
      await Promise.all([expect(written).rejects.toMatchObject({ code: 'UNAVAILABLE' }), cut('work')]);
    });
  });

  test('a statement that waits for a row lock holds up no other', async () => {
    await db.work.query('create table public.t (n int); insert into public.t values (0)');
    const add = (n: number) => db.submit.query('update public.t set n = n + $1', [n]);
    const read = (n: number) => db.submit.query('select $1::int as n', [n]);
    // Prepared on every connection: only then would postgres.js send one behind another.
    for (let round = 0; round < 10; round++) await Promise.all([add(0), read(0), add(0), read(0)]);
    const locked = deferred();
    const release = deferred();
    const holder = db.work.transaction(async (tx) => {
      await tx.query('update public.t set n = n + 1');
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const blocked = Promise.all([1, 2, 3].map(add));
    const others = Promise.all(Array.from({ length: 50 }, (_, n) => read(n)));
    expect(await within(5_000, others, 'statements beside blocked ones')).toHaveLength(50);
    release.resolve();
    await holder;
    await blocked;
    expect(await db.read.query('select n from public.t')).toEqual([{ n: 7 }]);
  });

  test('a statement that fails behind its first rows leaves nothing in the results of the next ones', async () => {
    const fails = () => db.submit.query('select 1 / (3 - g) as n from generate_series(1, 5) as g');
    const lists = () => db.submit.query<{ n: number }>('select g::int as n from generate_series(1, 3) as g');
    await Promise.all(Array.from({ length: 40 }, () => expect(fails()).rejects.toThrow()));
    const answers = await Promise.all(Array.from({ length: 40 }, lists));
    for (const rows of answers) expect(rows).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  });

  test('hot statements are prepared, unless that is switched off', async () => {
    for (const prepare of [true, false]) {
      const other = await openAt(db.url as string, { prepare });
      for (let i = 0; i < 3; i++) await other.beat.query('select $1::int as hot', [i]);
      const [row] = await other.beat.query<{ n: number }>(
        `select count(*) as n from pg_prepared_statements where statement like '%as hot'`,
      );
      expect(row?.n).toBe(prepare ? 1 : 0);
    }
  });

  test('more callers than connections wait in line, but not for ever', async () => {
    const other = await openAt(db.url as string, { poolSizes: { work: 1 }, answerMs: { work: 400 } });
    const go = deferred();
    const holder = other.work.transaction(() => go.promise);
    const refused = other.work.query('select 1');
    await expect(within(5_000, refused)).rejects.toThrow(/became free/);
    const waiting = other.work.query('select 1 as one');
    go.resolve();
    await holder;
    expect(await waiting).toEqual([{ one: 1 }]);
  });

  test('closing waits for what is under way; afterwards everything is Unavailable', async () => {
    const other = await openDatabase({ url: db.url as string });
    const inside = deferred();
    const slow = other.work.transaction(async (tx) => {
      inside.resolve();
      await sleep(200);
      return tx.query('select 1 as one');
    });
    await inside.promise;
    await Promise.all([other.close(), other.close()]);
    expect(await slow).toEqual([{ one: 1 }]);
    await expect(other.work.query('select 1')).rejects.toBeInstanceOf(Unavailable);
    await expect(other.work.transaction(async () => {})).rejects.toBeInstanceOf(Unavailable);
  });
});

/** Refuses start parameters as PgBouncer does, and passes everything else on. */
async function startPooler(target: number): Promise<{ port: number; refused: () => number }> {
  let refused = 0;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.once('data', (start) => {
      const unknown = ['idle_in_transaction_session_timeout', 'statement_timeout'].find((name) =>
        start.includes(`${name}\0`),
      );
      if (unknown === undefined) {
        upstream.write(start);
        client.pipe(upstream).pipe(client);
        return;
      }
      refused++;
      const text = `SFATAL\0C08P01\0Munsupported startup parameter: ${unknown}\0\0`;
      const length = Buffer.alloc(4);
      length.writeInt32BE(text.length + 4);
      client.end(Buffer.concat([Buffer.from('E'), length, Buffer.from(text)]));
      upstream.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, refused: () => refused };
}

describePostgres('a Postgres behind a pooler', () => {
  test('is used without session settings and prepared statements, from the first statement on', async () => {
    const url = new URL(await createPostgresDatabase());
    const pooler = await startPooler(Number(url.port || 5432));
    const db = await openAt(Object.assign(new URL(url), { port: `${pooler.port}` }).href);
    const answers = await Promise.all([1, 2, 3].map((n) => db.work.query('select $1::int as n', [n])));
    expect(answers.flat()).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(await db.submit.transaction((tx) => tx.query('select 1 as one'))).toEqual([{ one: 1 }]);
    await expect(db.read.query('create table public.t (n int)')).rejects.toMatchObject({ code: '25006' });
    const known = pooler.refused();
    await db.work.query('select 1');
    expect(pooler.refused()).toBe(known);
    const [row] = await db.beat.query<{ n: number }>('select count(*) as n from pg_prepared_statements where $1', [
      true,
    ]);
    expect(row?.n).toBe(0);
  });

  test('the URL may say so beforehand', async () => {
    const url = await createPostgresDatabase();
    const pooler = await startPooler(Number(new URL(url).port || 5432));
    const pooled = Object.assign(new URL(url), { port: `${pooler.port}`, search: '?prepare=false' });
    const db = await openAt(pooled.href);
    expect(await db.work.query('select $1::int as n', [1])).toEqual([{ n: 1 }]);
    expect(pooler.refused()).toBe(0);
  });
});

describePostgres('a Postgres that goes away', () => {
  let proxy: TcpProxy;
  let db: OpenDatabase;
  beforeEach(async () => {
    const url = new URL(await createPostgresDatabase());
    proxy = await startProxy(Number(url.port || 5432));
    url.port = `${proxy.port}`;
    db = await openDatabase({ url: url.href, poolSizes: { work: 3 }, answerMs: { work: 400, user: 400 } });
    expect(await db.work.query('select 1 as one')).toEqual([{ one: 1 }]);
  });
  afterEach(async () => {
    await db.close();
    await proxy.close();
  });
  const works = () => eventually(async () => expect(await db.work.query('select 1 as one')).toEqual([{ one: 1 }]));

  test('a server that is not there is Unavailable at once, and is used as soon as it is there', async () => {
    const nobody = await openAt(`postgres://postgres@127.0.0.1:${await freePort()}/nothing`);
    await expect(within(5_000, nobody.work.query('select 1'))).rejects.toMatchObject({
      cause: { code: 'ECONNREFUSED' },
    });
    await expect(
      within(
        5_000,
        nobody.work.transaction(async () => {}),
      ),
    ).rejects.toBeInstanceOf(Unavailable);
    await within(5_000, nobody.close());
  });

  test('cut connections fail what runs on them with Unavailable; the next statements use new ones', async () => {
    for (let round = 0; round < 5; round++) {
      const running = [
        db.work.query('select pg_sleep(20)'),
        db.work.transaction((tx) => tx.query('select pg_sleep(20)')),
        db.work.transaction((tx) => tx.user.transaction((inner) => inner.execute('select pg_sleep(20)'))),
        db.work.user.execute('select pg_sleep(20)'),
      ];
      const outcomes = Promise.allSettled(running);
      await sleep(round * 20);
      proxy.cut();
      for (const outcome of await within(10_000, outcomes)) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'UNAVAILABLE' } });
      }
      await works();
    }
  });

  test('a transaction that waits for something else while its connection is cut ends at once, and the process lives', async () => {
    const inside = deferred();
    const go = deferred();
    const nested = deferred();
    const afterwards: unknown[] = [];
    const open = db.work.transaction(async (tx) => {
      await tx.query('select 1');
      await tx.user
        .transaction(async () => {
          inside.resolve();
          await go.promise;
        })
        .catch((error: unknown) => afterwards.push(error));
      nested.resolve();
    });
    await inside.promise;
    proxy.cut();
    await expect(within(5_000, open)).rejects.toBeInstanceOf(Unavailable);
    go.resolve();
    await within(5_000, nested.promise);
    expect(afterwards).toHaveLength(1);
    await works();
  });

  test('connections that swallow everything are given up after the time for an answer', async () => {
    // Every connection of the pool is open, and so will be dead.
    await Promise.all([1, 2, 3].map(() => db.work.query('select pg_sleep(0.05)')));
    const inside = deferred();
    const go = deferred();
    const open = db.work.transaction(async (tx) => {
      await tx.query('select 1');
      inside.resolve();
      await go.promise;
      await tx.query('select 1');
    });
    await inside.promise;
    proxy.mode = 'blackhole';
    go.resolve();
    const waiting = [open, db.work.query('select 1'), db.work.transaction(async () => {})];
    for (const outcome of await within(5_000, Promise.allSettled(waiting))) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'UNAVAILABLE' } });
    }
    // What was swallowed never comes: the old connections stay dead, only new ones can answer.
    proxy.mode = 'pass';
    await works();
  });
});
