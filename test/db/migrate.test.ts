import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { IncompatibleDatabase } from '../../src/core/errors.ts';
import { assertMigrated, MIN_COMPATIBLE, migrate, SCHEMA_VERSION, withSetupLock } from '../../src/db/migrate.ts';
import { type OpenDatabase, openDatabase, openEmbedded } from '../../src/db/open.ts';
import { startChild } from '../support/child.ts';
import { createPostgresDatabase, databases, describePostgres } from '../support/database.ts';
import { deferred, eventually } from '../support/eventually.ts';

const DRIZZLE = fileURLToPath(new URL('../../drizzle', import.meta.url));
const CHILD = new URL('./children/migrate.ts', import.meta.url);

async function openAt(url: string): Promise<OpenDatabase> {
  const database = await openDatabase({ url });
  onTestFinished(() => database.close());
  return database;
}

/** The real migrations and one more. */
async function folderWith(tag: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-migrations-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await cp(DRIZZLE, folder, { recursive: true });
  const path = join(folder, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(path, 'utf8')) as { entries: object[] };
  journal.entries.push({ idx: journal.entries.length, version: '7', when: Date.now(), tag, breakpoints: true });
  await writeFile(path, JSON.stringify(journal));
  await writeFile(join(folder, `${tag}.sql`), text);
  return folder;
}

const tables = async (db: OpenDatabase) =>
  (await db.read.query<{ n: number }>(`select count(*) as n from pg_tables where schemaname = 'waymark'`))[0]?.n;

test('the number of this program is the number of migrations', async () => {
  const journal = JSON.parse(await readFile(join(DRIZZLE, 'meta/_journal.json'), 'utf8')) as { entries: unknown[] };
  expect(SCHEMA_VERSION).toBe(journal.entries.length);
  expect(MIN_COMPATIBLE).toBeLessThanOrEqual(SCHEMA_VERSION);
});

describe.each(databases())('migrating on $name', ({ open }) => {
  test('a second time changes nothing', async () => {
    const db = await open();
    expect(await migrate(db.maintenance)).toEqual([]);
    await assertMigrated(db.read);
    expect(await db.read.query('select key, value from waymark.meta order by key')).toEqual([
      { key: 'min_compatible', value: `${MIN_COMPATIBLE}` },
      { key: 'version', value: `${SCHEMA_VERSION}` },
    ]);
  });

  test('hot tables have room for heap-only updates and are vacuumed early', async () => {
    const db = await open();
    const rows = await db.read.query<{ name: string; options: string[] }>(
      `select relname as name, reloptions as options from pg_class where relnamespace = 'waymark'::regnamespace and reloptions is not null`,
    );
    const options = new Map(rows.map((row) => [row.name, row.options]));
    expect(options.get('job_states')).toContain('fillfactor=70');
    expect(options.get('checkpoints')).toContain('fillfactor=80');
    expect(options.get('workers')).toContain('fillfactor=50');
    for (const name of ['job_states', 'checkpoints', 'workers', 'count_deltas', 'followups']) {
      expect(options.get(name)).toContain('autovacuum_vacuum_scale_factor=0.01');
    }
  });

  test("the user's setup can use the database", async () => {
    const db = await open();
    await withSetupLock(db, async () => {
      await db.work.user.execute('create table public.mine (n int)');
      await db.work.user.transaction((tx) => tx.execute('insert into public.mine values (1)'));
    });
    expect(await db.read.query('select n from public.mine')).toEqual([{ n: 1 }]);
  });
});

test('an empty embedded database is migrated', async () => {
  const db = await openEmbedded('memory://');
  try {
    await expect(assertMigrated(db.read)).rejects.toThrow(/never migrated/);
    expect(await migrate(db.maintenance)).toHaveLength(SCHEMA_VERSION);
    await assertMigrated(db.read);
  } finally {
    await db.close();
  }
});

describePostgres('migrating on Postgres', () => {
  test('programs that start together on an empty database all come up, and one of them migrates', {
    timeout: 120_000,
  }, async () => {
    for (let round = 0; round < 5; round++) {
      const url = await createPostgresDatabase({ empty: true });
      const all = await Promise.all(Array.from({ length: 8 }, () => openAt(url)));
      const applied = await Promise.all(all.map((db) => migrate(db.maintenance)));
      expect(applied.filter((tags) => tags.length > 0)).toHaveLength(1);
      await Promise.all(all.map((db) => assertMigrated(db.read)));
      await Promise.all(all.map((db) => db.close()));
    }
    const url = await createPostgresDatabase({ empty: true });
    const children = Array.from({ length: 4 }, () => startChild(CHILD, [url]));
    const outcomes = await Promise.all(children.map((child) => child.next<{ applied?: string[] }>()));
    expect(outcomes.map((o) => o.applied?.length).sort()).toEqual([0, 0, 0, SCHEMA_VERSION]);
  });

  test('a program that is killed in the middle leaves nothing half', async () => {
    const url = await createPostgresDatabase({ empty: true });
    const db = await openAt(url);
    const folder = await folderWith(
      '9999_slow',
      `create table waymark.half (n int);--> statement-breakpoint\nselect pg_sleep(2);`,
    );
    const child = startChild(CHILD, [url, folder]);
    while ((await child.next()).migration !== '9999_slow');
    await eventually(async () =>
      expect(
        await db.read.query(
          `select 1 from pg_stat_activity where datname = current_database() and query like '%pg_sleep%' and pid <> pg_backend_pid()`,
        ),
      ).toHaveLength(1),
    );
    child.kill('SIGKILL');
    await child.ended;
    expect(await tables(db)).toBe(0);
    expect(await migrate(db.maintenance)).toHaveLength(SCHEMA_VERSION);
    expect(await db.read.query(`select to_regclass('waymark.half') as half`)).toEqual([{ half: null }]);
  });

  test('a migration that fails leaves the database as it was', async () => {
    const db = await openAt(await createPostgresDatabase());
    const before = await tables(db);
    const folder = await folderWith(
      '9999_wrong',
      `create table waymark.half (n int);--> statement-breakpoint\nselect 1/0;`,
    );
    await expect(migrate(db.maintenance, { folder })).rejects.toMatchObject({ code: '22012' });
    expect(await tables(db)).toBe(before);
    await assertMigrated(db.read);
  });

  test('only what is missing is applied; a database that is ahead is fine until it says otherwise', async () => {
    const db = await openAt(await createPostgresDatabase());
    const folder = await folderWith('9999_next', 'create table waymark.next (n int)');
    expect(await migrate(db.maintenance, { folder })).toEqual(['9999_next']);

    expect(await migrate(db.maintenance)).toEqual([]);
    await assertMigrated(db.read);
    const meta = () => db.read.query<{ value: string }>(`select value from waymark.meta where key = 'version'`);
    expect(await meta()).toEqual([{ value: `${SCHEMA_VERSION + 1}` }]);

    await db.work.query(`update waymark.meta set value = '${SCHEMA_VERSION + 1}' where key = 'min_compatible'`);
    await expect(migrate(db.maintenance)).rejects.toBeInstanceOf(IncompatibleDatabase);
    await expect(assertMigrated(db.read)).rejects.toThrow(/update it/);
    expect(await migrate(db.maintenance, { folder })).toEqual([]);
  });

  test('a migration that was changed after it was applied is refused', async () => {
    const db = await openAt(await createPostgresDatabase());
    await db.work.query(`update waymark.migrations set hash = 'other'`);
    await expect(migrate(db.maintenance)).rejects.toThrow(/is not the one that was applied/);
  });

  test('a schema that an administrator made is used', async () => {
    const db = await openAt(await createPostgresDatabase({ empty: true }));
    await db.work.query('create schema waymark');
    expect(await migrate(db.maintenance)).toHaveLength(SCHEMA_VERSION);
  });

  test('setups of several programs run one after another', async () => {
    const url = await createPostgresDatabase();
    const programs = await Promise.all([openAt(url), openAt(url), openAt(url)]);
    let running = 0;
    const entered = deferred();
    await Promise.all(
      programs.map((db) =>
        withSetupLock(db, async () => {
          expect(++running).toBe(1);
          entered.resolve();
          await db.work.user.execute('create table if not exists public.mine (n int)');
          running--;
        }),
      ),
    );
    await entered.promise;
  });
});
