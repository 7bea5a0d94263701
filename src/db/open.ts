import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Logger, silentLogger } from '../core/log.ts';
import { adopt } from './adopt.ts';
import { type DirOwner, ownDataDir } from './data-dir.ts';
import { DbHandle } from './handle.ts';
import { EmbeddedPool } from './pglite.ts';
import { PostgresPool } from './postgres.ts';
import type { Purpose } from './postgres-settings.ts';
import type { Database } from './types.ts';

export interface OpenOptions {
  /** A Postgres URL. Without one the database is embedded, in `dataDir`. */
  url?: string;
  /** The embedded database's directory, made when it is missing; `memory://` keeps it in memory. */
  dataDir?: string;
  /** Told to whoever finds `dataDir` in use; later by `setAddress`. */
  address?: string | null;
  /**
   * False behind a pooler in transaction mode, such as PgBouncer. Default: what `?prepare=` in the URL says, else true
   * until a pooler refuses the start parameters of a session, which the usual ones do.
   */
  prepare?: boolean;
  /** Connections at most, by purpose. They are opened when needed and closed when idle. */
  poolSizes?: Partial<Record<Purpose, number>>;
  /** Shown in `pg_stat_activity`, followed by the purpose. Default `waymark`. */
  applicationName?: string;
  /** The longest time for one statement, by purpose; then it rejects with Unavailable. On Postgres only. */
  answerMs?: Partial<Record<Purpose, number>>;
  /**
   * The longest time between two statements of one of our own transactions; then it is undone. Nothing of ours pauses there,
   * so one that does belongs to a process that is frozen or cut off, whose locks others wait for. On Postgres only. Default
   * 15 s.
   */
  idleMs?: number;
  log?: Logger;
  /** A copy of a fresh embedded database to start from (`dump`), which takes a second less. */
  template?: Blob;
}

export interface OpenDatabase extends Database {
  /** Embedded: tells those who find the directory in use where its owner listens. Does nothing on Postgres. */
  setAddress(address: string | null): void;
}

export interface EmbeddedDatabase extends OpenDatabase {
  readonly kind: 'embedded';
  /** A copy of the whole database, to start others from. */
  dump(): Promise<Blob>;
}

const SIZES: Record<Purpose, number> = { submit: 4, work: 10, beat: 1, read: 4, maintenance: 2, user: 10 };
/**
 * None for a user's own statements: how long those may take is for the user to say. Short for the beat: when its
 * connection is dead there must be time for another one within a lease.
 */
const ANSWER_MS: Partial<Record<Purpose, number>> = {
  submit: 10_000,
  work: 30_000,
  beat: 4_000,
  read: 10_000,
  maintenance: 60_000,
};
const IDLE_MS = 15_000;
/** A handler may think between two statements of its own transaction. */
const USER_IDLE_MS = 60_000;

/**
 * Opens Waymark's database. Postgres is connected to by the first statement, so this does not fail while it is away.
 *
 * @throws DataDirInUse when another process owns `dataDir`.
 */
export async function openDatabase(options: OpenOptions): Promise<OpenDatabase> {
  if (options.url !== undefined) return openPostgres(options, options.url);
  if (options.dataDir === undefined) throw new TypeError('openDatabase needs a url or a dataDir');
  return openEmbedded(options.dataDir, options);
}

function openPostgres(options: OpenOptions, url: string): OpenDatabase {
  const pools: PostgresPool[] = [];
  const owner = {};
  const pool = (purpose: Purpose) => {
    const made = new PostgresPool({
      url,
      purpose,
      size: options.poolSizes?.[purpose] ?? SIZES[purpose],
      prepare: options.prepare ?? !/[?&]prepare=false\b/.test(url),
      answerMs: options.answerMs?.[purpose] ?? ANSWER_MS[purpose],
      idleMs: purpose === 'user' ? USER_IDLE_MS : (options.idleMs ?? IDLE_MS),
      applicationName: options.applicationName ?? 'waymark',
      log: options.log ?? silentLogger,
    });
    pools.push(made);
    return made;
  };
  const user = pool('user');
  const handle = (purpose: Purpose) => new DbHandle(pool(purpose), owner, user);
  let closing: Promise<void> | undefined;
  const close = async () => {
    await Promise.all(pools.map((pool) => pool.close()));
  };
  return {
    kind: 'postgres',
    submit: handle('submit'),
    work: handle('work'),
    beat: handle('beat'),
    read: handle('read'),
    maintenance: handle('maintenance'),
    adopt,
    setAddress() {},
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/** `openDatabase` for what only the embedded database can do. */
export async function openEmbedded(dataDir: string, options: OpenOptions = {}): Promise<EmbeddedDatabase> {
  const inMemory = dataDir.startsWith('memory://');
  const dir = inMemory ? undefined : await ownDataDir(dataDir, { address: options.address ?? null });
  try {
    return await startEmbedded(dir, options);
  } catch (error) {
    await dir?.release();
    throw error;
  }
}

async function startEmbedded(dir: DirOwner | undefined, options: OpenOptions): Promise<EmbeddedDatabase> {
  const log = options.log ?? silentLogger;
  const dataDir = dir === undefined ? 'memory://' : join(dir.path, 'database');
  if (dir !== undefined) await mkdir(dataDir, { recursive: true, mode: 0o700 });
  log.info({ dataDir }, 'the embedded database starts; the first start takes some seconds');
  const pool = new EmbeddedPool({ dataDir, ...(options.template === undefined ? {} : { template: options.template }) });
  try {
    await pool.run('select 1', [], { as: 'objects', prepare: false });
  } catch (error) {
    await pool.close();
    throw error;
  }
  const handle = new DbHandle(pool, {});
  return {
    kind: 'embedded',
    submit: handle,
    work: handle,
    beat: handle,
    read: handle,
    maintenance: handle,
    adopt,
    setAddress: (address) => dir?.setAddress(address),
    dump: () => pool.dump(),
    // The directory is given up last: until then its files are still written.
    close: () => pool.close().finally(() => dir?.release()),
  };
}
