import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Unavailable } from '../../src/core/errors.ts';
import { type EmbeddedDatabase, openEmbedded } from '../../src/db/open.ts';
import { startChild } from '../support/child.ts';
import { embeddedTemplate } from '../support/database.ts';
import { deferred, within } from '../support/eventually.ts';

const BUSY = 'select count(*) as n from generate_series(1, 1500000) a where a % 7 = 0';

/** Opens one in memory, with the thread that it started. */
async function openWithThread(): Promise<{ database: EmbeddedDatabase; thread: Worker }> {
  const threads: Worker[] = [];
  const note = (worker: Worker) => threads.push(worker);
  process.on('worker', note);
  const database = await openEmbedded('memory://', { template: await embeddedTemplate() });
  process.off('worker', note);
  return { database, thread: threads.at(-1) as Worker };
}

describe('the embedded database', () => {
  let db: EmbeddedDatabase;
  beforeAll(async () => {
    db = (await openWithThread()).database;
    await db.work.query('create table public.t (n int primary key)');
  });
  afterAll(() => db.close());

  test('finds rows by an index also while nothing is known of a table: nobody analyzes it', async () => {
    const plan = await db.work.query<Record<string, string>>(
      `explain select count(*) from waymark.jobs j join waymark.job_states s on s.id = j.id
       where j.tenant = 'default' and j.tags @> '{x}' and j.tags <> '{}' and s.pruned_at is null`,
    );
    expect(plan.map((row) => Object.values(row)[0]).join('\n')).not.toContain('Seq Scan');
  });

  test("a long statement does not block the program's event loop", async () => {
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const started = performance.now();
    await db.work.query(BUSY);
    const took = performance.now() - started;
    delay.disable();
    expect(took).toBeGreaterThan(100);
    expect(delay.max / 1e6).toBeLessThan(took / 2);
  });

  test('what comes during a transaction waits for its end; who came first goes first', async () => {
    const order: string[] = [];
    const note = (name: string) => () => order.push(name);
    const inside = deferred();
    const go = deferred();
    const first = db.work.transaction(async (tx) => {
      inside.resolve();
      await go.promise;
      await tx.query('select 1');
    });
    await inside.promise;
    const rest = [
      first.then(note('first')),
      db.work.query('select 1').then(note('statement')),
      db.work.transaction((tx) => tx.query('select 1')).then(note('second')),
      db.work.query('select 1').then(note('later')),
    ];
    await within(200, Promise.race(rest.slice(1))).catch(() => {});
    expect(order).toEqual([]);
    go.resolve();
    await Promise.all(rest);
    expect(order).toEqual(['first', 'statement', 'second', 'later']);
  });

  test('a parameter that no thread can be given fails its own statement only', async () => {
    const odd = (() => {}) as never;
    await expect(db.work.query('select $1', [odd])).rejects.toThrow(/could not be cloned/);
    await expect(db.work.transaction((tx) => tx.query('select $1', [odd]))).rejects.toThrow(/could not be cloned/);
    expect(await db.work.query('select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('an error keeps what the database said: code, detail, constraint', async () => {
    const twice = db.work.query('insert into public.t values (1), (1)');
    await expect(twice).rejects.toMatchObject({
      code: '23505',
      constraint: 't_pkey',
      detail: expect.stringContaining('(n)=(1)'),
    });
  });

  test('a transaction after a failed one is as good as new', async () => {
    for (let i = 0; i < 3; i++) {
      await db.work.transaction((tx) => tx.query('select 1/0')).catch(() => {});
      await db.work.transaction((tx) => tx.query('insert into public.t values ($1)', [100 + i]));
    }
    expect(await db.work.query('select count(*) as n from public.t where n >= 100')).toEqual([{ n: 3 }]);
  });

  test('a hot statement survives a change of its table, DISCARD ALL and its own failures', async () => {
    await db.work.query('create table public.hot (n int primary key)');
    const add = (n: number) => db.work.query('insert into public.hot values ($1) returning *', [n]);
    const read = (n: number) => db.work.query('select * from public.hot where n = $1', [n]);
    expect(await add(1)).toEqual([{ n: 1 }]);
    await expect(add(1)).rejects.toMatchObject({ code: '23505' });
    await expect(add(1)).rejects.toMatchObject({ code: '23505' });
    expect(await read(1)).toEqual([{ n: 1 }]);
    await db.work.query(`alter table public.hot add column more text default 'x'`);
    expect(await add(2)).toEqual([{ n: 2, more: 'x' }]);
    expect(await read(2)).toEqual([{ n: 2, more: 'x' }]);
    await db.work.query('discard all');
    expect(await read(2)).toEqual([{ n: 2, more: 'x' }]);
    expect(
      await db.work.transaction(async (tx) => tx.query('select * from public.hot where n = $1', [1])),
    ).toHaveLength(1);
    await expect(db.work.query('select nonsense from public.hot where n = $1', [1])).rejects.toMatchObject({
      code: '42703',
    });
  });

  test('closing waits for what is under way; afterwards, and for a second close, nothing is left to do', async () => {
    const { database } = await openWithThread();
    const slow = database.work.transaction(async (tx) => {
      await tx.query(BUSY);
      return tx.query('select 1 as one');
    });
    await Promise.all([database.close(), database.close()]);
    expect(await slow).toEqual([{ one: 1 }]);
    await expect(database.work.query('select 1')).rejects.toBeInstanceOf(Unavailable);
    await expect(database.work.transaction(async () => {})).rejects.toBeInstanceOf(Unavailable);
  });

  test('when its thread dies, whatever waits and whatever comes is Unavailable', async () => {
    const { database, thread } = await openWithThread();
    const waiting = [
      database.work.query(BUSY),
      database.work.query('select 1'),
      database.work.transaction((tx) => tx.query('select 1')),
    ];
    const outcomes = Promise.allSettled(waiting);
    await thread.terminate();
    for (const outcome of await within(5_000, outcomes)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'UNAVAILABLE' } });
    }
    await expect(database.work.query('select 1')).rejects.toBeInstanceOf(Unavailable);
    await within(5_000, database.close());
  });
});

describe('the embedded database in a directory', () => {
  test('what was acknowledged is there after kill -9', { timeout: 180_000 }, async () => {
    const dir = await mkdtemp(join(tmpdir(), 'waymark-kill-'));
    let acknowledged = 0;
    try {
      for (let round = 0; round < 3; round++) {
        const child = startChild(new URL('./children/write-rows.ts', import.meta.url), [dir]);
        const until = acknowledged + 40 + round * 17;
        while (acknowledged < until) acknowledged = (await child.next<{ n: number }>()).n;
        child.kill('SIGKILL');
        await child.ended;
      }
      const database = await openEmbedded(dir);
      const [row] = await database.work.query<{ rows: number; indexed: number }>(
        `select (select count(*) from public.acks where n <= $1) as rows,
                (select count(*) from generate_series(1, $1) g where exists (select from public.acks where n = g)) as indexed`,
        [acknowledged],
      );
      expect(row).toEqual({ rows: acknowledged, indexed: acknowledged });
      await database.close();
      const again = await openEmbedded(dir);
      expect(await again.work.query('select count(*) > 0 as some from public.acks')).toEqual([{ some: true }]);
      await again.close();
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});
