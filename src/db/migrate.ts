import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type MigrationMeta, readMigrationFiles } from 'drizzle-orm/migrator';
import { IncompatibleDatabase } from '../core/errors.ts';
import { type Logger, silentLogger } from '../core/log.ts';
import { outsideTransaction } from './inside-transaction.ts';
import type { Database, Db, Executor } from './types.ts';

/** How many migrations this program knows; the number by which programs and databases are compared. */
export const SCHEMA_VERSION = 2;

/**
 * The oldest program that may use a database which this one has migrated. It is raised only by a migration that older
 * programs cannot live with, since those are then refused: it ends rolling deploys and going back.
 */
export const MIN_COMPATIBLE = 1;

/** One lock for all processes that migrate or set up. Of this transaction only, so that it works behind a pooler. */
const LOCK = `select pg_advisory_xact_lock(5641983457920714)`;

/** A migration of large tables, and the wait for another process that runs one, take as long as they take. */
const NO_LIMIT = { timeoutMs: Number.POSITIVE_INFINITY };

/** The same place seen from `src/db` and from `dist/db`. */
const FOLDER = fileURLToPath(new URL('../../drizzle', import.meta.url));

interface Migration {
  tag: string;
  hash: string;
  statements: readonly string[];
}

export interface MigrateOptions {
  log?: Logger;
  /** Where the migrations are; for tests. */
  folder?: string;
}

/**
 * Brings the database up to date, in one transaction under a lock: processes that start together wait for the first,
 * and one that is killed in the middle leaves nothing. On a database that is up to date it changes nothing; one that is
 * ahead is accepted as long as it says that this program may use it.
 *
 * @returns The tags of the migrations that were applied now.
 * @throws IncompatibleDatabase when a newer program has closed the database to this one, or an applied migration is not
 *   the one in the folder.
 */
export async function migrate(db: Db, { log = silentLogger, folder = FOLDER }: MigrateOptions = {}): Promise<string[]> {
  const migrations = readMigrations(folder);
  return db.transaction(async (tx) => {
    await tx.query(LOCK);
    const applied = await readApplied(tx);
    const { version, minCompatible } = await readMeta(tx);
    refuseIncompatible(minCompatible, migrations.length);
    const missing = migrations.filter((m) => !applied.has(m.tag));
    for (const migration of migrations) refuseChanged(migration, applied.get(migration.tag));
    if (missing.length === 0) return [];

    if (!(await exists(tx, `to_regnamespace('waymark')`))) await tx.query(`create schema waymark`);
    await tx.query(`create table if not exists waymark.migrations (
      tag text primary key, hash text not null, applied_at timestamptz not null default clock_timestamp())`);
    for (const { tag, hash, statements } of missing) {
      log.info({ migration: tag }, 'migrating the database');
      for (const statement of statements) await tx.query(statement);
      await tx.query(`insert into waymark.migrations (tag, hash) values ($1, $2)`, [tag, hash]);
    }
    await writeMeta(tx, 'version', Math.max(version, migrations.length));
    await writeMeta(tx, 'min_compatible', Math.max(minCompatible, MIN_COMPATIBLE));
    return missing.map((m) => m.tag);
  }, NO_LIMIT);
}

/**
 * For programs that do not migrate: checks that they may use the database as it is.
 *
 * @throws IncompatibleDatabase when it was not (fully) migrated, or is closed to this program.
 */
export async function assertMigrated(db: Executor): Promise<void> {
  const applied = await readApplied(db);
  const missing = readMigrations(FOLDER).filter((m) => !applied.has(m.tag));
  if (missing.length > 0) {
    const what = applied.size === 0 ? 'was never migrated' : `lacks ${missing.map((m) => m.tag).join(', ')}`;
    throw new IncompatibleDatabase(`the database ${what}; run \`waymark migrate\` first`);
  }
  refuseIncompatible((await readMeta(db)).minCompatible, SCHEMA_VERSION);
}

/**
 * Runs a user's `setup` while no other process migrates or sets up. On Postgres the lock is held by a transaction of
 * its own, and `setup` uses other connections. The embedded database has one connection and one process: no lock.
 */
export async function withSetupLock<T>(database: Database, setup: () => Promise<T>): Promise<T> {
  if (database.kind === 'embedded') return setup();
  return database.maintenance.transaction(
    async (tx) => {
      await tx.query(LOCK);
      return outsideTransaction(setup);
    },
    { retry: false, ...NO_LIMIT },
  );
}

function readMigrations(folder: string): Migration[] {
  const journal = JSON.parse(readFileSync(`${folder}/meta/_journal.json`, 'utf8')) as { entries: { tag: string }[] };
  return readMigrationFiles({ migrationsFolder: folder }).map((file: MigrationMeta, index) => ({
    tag: journal.entries[index]?.tag ?? file.hash,
    hash: file.hash,
    // The schema is made by `migrate`, which accepts one that an administrator has made.
    statements: file.sql.filter((statement) => !/^\s*create schema "waymark";?\s*$/i.test(statement)),
  }));
}

function refuseChanged({ tag, hash }: Migration, applied: string | undefined): void {
  if (applied === undefined || applied === hash) return;
  throw new IncompatibleDatabase(`migration ${tag} is not the one that was applied to this database`);
}

function refuseIncompatible(minCompatible: number, mine: number): void {
  if (minCompatible <= mine) return;
  throw new IncompatibleDatabase(
    `the database needs a program with migrations up to ${minCompatible} or later; this one has ${mine}: update it`,
  );
}

async function readApplied(db: Executor): Promise<Map<string, string>> {
  if (!(await exists(db, `to_regclass('waymark.migrations')`))) return new Map();
  const rows = await db.query<{ tag: string; hash: string }>(`select tag, hash from waymark.migrations`);
  return new Map(rows.map((row) => [row.tag, row.hash]));
}

async function readMeta(db: Executor): Promise<{ version: number; minCompatible: number }> {
  const values = new Map<string, number>();
  if (await exists(db, `to_regclass('waymark.meta')`)) {
    const rows = await db.query<{ key: string; value: string }>(`select key, value from waymark.meta`);
    for (const { key, value } of rows) values.set(key, Number(value));
  }
  return { version: values.get('version') ?? 0, minCompatible: values.get('min_compatible') ?? 0 };
}

async function writeMeta(db: Executor, key: string, value: number): Promise<void> {
  await db.query(
    `insert into waymark.meta (key, value) values ($1, $2)
     on conflict (key) do update set value = excluded.value`,
    [key, String(value)],
  );
}

async function exists(db: Executor, expression: string): Promise<boolean> {
  const [row] = await db.query<{ there: boolean }>(`select ${expression} is not null as there`);
  return row?.there === true;
}
