import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import postgres, { type Sql } from 'postgres';
import { afterAll, describe, inject, onTestFinished, test } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import {
  type EmbeddedDatabase,
  type OpenDatabase,
  type OpenOptions,
  openDatabase,
  openEmbedded,
} from '../../src/db/open.ts';

export interface TestDatabase extends OpenDatabase {
  /** Postgres: for a second handle, as from another process. */
  readonly url: string | undefined;
}

export interface Store {
  readonly name: 'PGlite' | 'Postgres';
  /**
   * A fresh, migrated database. It is closed for you: after the test when it was opened in one (or in its `beforeEach`),
   * else after the file. On PGlite a file has one instance, which is emptied each time: stop first what still uses it.
   */
  open(options?: Omit<OpenOptions, 'url' | 'dataDir'>): Promise<TestDatabase>;
}

/** Both stores, for `describe.each(databases())('… on $name', ({ open }) => …)`. Postgres is left out when it is missing. */
export function databases(): Store[] {
  const server = inject('postgres');
  if ('missing' in server) test.skip(`on Postgres, which is missing: ${server.missing}`, () => {});
  return [pglite, ...('missing' in server ? [] : [onPostgres])];
}

/** A suite that only a real server can run; skipped by name without one. */
export function describePostgres(name: string, body: (store: Store) => void): void {
  const server = inject('postgres');
  if ('missing' in server) test.skip(`${name}: Postgres is missing: ${server.missing}`, () => {});
  else describe(name, () => body(onPostgres));
}

/** A suite that needs Redis; skipped by name without it. Its keys and channels are shared: use a prefix of your own. */
export function describeRedis(name: string, body: (url: string) => void): void {
  const server = inject('redis');
  if ('missing' in server) test.skip(`${name}: Redis is missing: ${server.missing}`, () => {});
  else describe(name, () => body(server.url));
}

const onPostgres: Store = {
  name: 'Postgres',
  async open(options) {
    const url = await createPostgresDatabase();
    const database = await openDatabase({ ...options, url });
    closeAfterwards(async () => {
      await database.close();
      // Hundreds of tests would fill the disk until the end of the run.
      await administer((sql) => sql.unsafe(`drop database if exists ${nameOf(url)} with (force)`));
    });
    return Object.assign(database, { url });
  },
};

/** A new Postgres database and its URL: migrated, or `empty`. Dropped after the run. */
export async function createPostgresDatabase({ empty = false } = {}): Promise<string> {
  const server = inject('postgres');
  if ('missing' in server) throw new Error(server.missing);
  const name = server.prefix + randomBytes(6).toString('hex');
  await administer((sql) => sql.unsafe(`create database ${name} template ${empty ? 'template0' : server.template}`));
  return Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
}

const nameOf = (url: string) => new URL(url).pathname.slice(1);

async function administer<T>(work: (sql: Sql) => PromiseLike<T>): Promise<T> {
  const server = inject('postgres');
  if ('missing' in server) throw new Error(server.missing);
  const sql = postgres(server.url, { max: 1, onnotice: () => {}, fetch_types: false });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

let embedded: Promise<EmbeddedDatabase> | undefined;

const pglite: Store = {
  name: 'PGlite',
  async open() {
    embedded ??= startEmbedded();
    const database = await embedded;
    await empty(database);
    // The file's one instance is closed at its end.
    return { ...database, url: undefined, close: async () => {} };
  },
};

async function startEmbedded(): Promise<EmbeddedDatabase> {
  const database = await openEmbedded('memory://', { template: await embeddedTemplate() });
  closeAfterFile(() => database.close());
  return database;
}

/** Deleting a test's few rows is many times faster than truncating every table. */
async function empty(database: EmbeddedDatabase): Promise<void> {
  const tables = await database.work.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname = 'waymark' and tablename not in ('meta', 'migrations')`,
  );
  const deletes = tables.map((t) => `delete from ${t.name}`).join('; ');
  await database.work.query(`${deletes}; drop schema public cascade; create schema public`);
}

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/waymark-test/', import.meta.url));
const MIGRATIONS = fileURLToPath(new URL('../../drizzle/', import.meta.url));

/** A migrated embedded database as a file, kept between runs: making one takes seconds. */
export async function embeddedTemplate(): Promise<Blob> {
  const path = `${CACHE}pglite-${await templateVersion()}.tar`;
  const kept = await readFile(path).catch(() => undefined);
  if (kept !== undefined) return new Blob([new Uint8Array(kept)]);

  const database = await openEmbedded('memory://');
  try {
    await migrate(database.maintenance);
    const blob = await database.dump();
    await mkdir(CACHE, { recursive: true });
    const temporary = `${path}.${randomBytes(4).toString('hex')}`;
    await writeFile(temporary, Buffer.from(await blob.arrayBuffer()));
    await rename(temporary, path);
    return blob;
  } finally {
    await database.close();
  }
}

async function templateVersion(): Promise<string> {
  const hash = createHash('sha256');
  hash.update(await readFile(new URL('../../node_modules/@electric-sql/pglite/package.json', import.meta.url)));
  for (const file of (await readdir(MIGRATIONS)).filter((f) => f.endsWith('.sql')).sort()) {
    hash.update(await readFile(MIGRATIONS + file));
  }
  return hash.digest('hex').slice(0, 16);
}

const afterFile: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of afterFile.splice(0)) await close();
});

function closeAfterFile(close: () => Promise<void>): void {
  afterFile.push(close);
}

function closeAfterwards(close: () => Promise<void>): void {
  try {
    onTestFinished(close);
  } catch {
    // Not inside a test: a `beforeAll`.
    closeAfterFile(close);
  }
}
