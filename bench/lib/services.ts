import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { findServices } from '../../test/support/services.ts';

/** The servers of this run, and places of its own on them. */
export interface Machine {
  postgresVersion: string;
  /** Its version and what it writes to disk: nothing else says what a system on it promises. */
  redis: string;
  redisUrl: string;
  /** Makes a fresh, empty database that is dropped at the end of the run. */
  createDatabase(name: string): Promise<BenchDatabase>;
  /** Makes a prefix for keys in Redis; all keys under it are removed at the end of the run. */
  createPrefix(name: string): string;
  /** Has something closed at the end of the run, the last one first, before its database and keys are removed. */
  atEnd(close: () => Promise<unknown>): void;
}

export interface BenchDatabase {
  url: string;
  /** For looking and for housekeeping between the rounds; one connection. */
  sql: postgres.Sql;
  /** Leaves nothing of the last round to be done during the next one: dead rows, statistics, dirty pages. */
  settleDown(): Promise<void>;
}

/**
 * Runs a benchmark on the servers that the tests use too (given addresses, usual ports, else local binaries). All it
 * makes is removed at the end, also after a failure or a Ctrl-C.
 * @throws when a server is not on this machine: the way over a network would be measured, and its data is not ours
 */
export async function withServices(run: (machine: Machine) => Promise<void>): Promise<void> {
  const { postgres: pg, redis } = await findServices(process.env);
  const cleanups: (() => Promise<unknown>)[] = [];
  for (const service of [pg, redis]) if (!('missing' in service)) cleanups.push(() => service.stop());
  let cleaning: Promise<void> | undefined;
  // A Ctrl-C makes the run fail too: both wait for the one cleanup.
  const cleanUp = () => {
    cleaning ??= (async () => {
      for (let clean = cleanups.pop(); clean; clean = cleanups.pop()) {
        await clean().catch((error) => console.error(error));
      }
    })();
    return cleaning;
  };
  const onSignal = () => void cleanUp().finally(() => process.exit(130));
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    if ('missing' in pg) throw new Error(pg.missing);
    if ('missing' in redis) throw new Error(redis.missing);
    for (const { url } of [pg, redis]) requireLoopback(url);
    const admin = connect(pg.url);
    cleanups.push(() => admin.end({ timeout: 5 }));
    const [row] = await admin<{ version: string }[]>`select current_setting('server_version') as version`;
    const keys = new Redis(redis.url);
    cleanups.push(() => keys.quit());
    await run({
      postgresVersion: row?.version ?? 'unknown',
      redis: await describeRedis(keys),
      redisUrl: redis.url,
      async createDatabase(name) {
        const database = unique(name);
        await admin.unsafe(`create database ${database}`);
        cleanups.push(() => admin.unsafe(`drop database if exists ${database} with (force)`));
        const url = Object.assign(new URL(pg.url), { pathname: `/${database}` }).href;
        const sql = connect(url);
        cleanups.push(() => sql.end({ timeout: 5 }));
        return { url, sql, settleDown: () => settleDown(sql) };
      },
      createPrefix(name) {
        const prefix = unique(name);
        cleanups.push(() => removeKeys(keys, prefix));
        return prefix;
      },
      atEnd: (close) => void cleanups.push(close),
    });
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    await cleanUp();
  }
}

/** A name that fits a database as well as a key. */
function unique(name: string): string {
  return `waymark_bench_${name.replaceAll('-', '_')}_${randomBytes(4).toString('hex')}`;
}

function connect(url: string): postgres.Sql {
  return postgres(url, { max: 1, onnotice: () => {}, fetch_types: false });
}

async function settleDown(sql: postgres.Sql): Promise<void> {
  await sql.unsafe('vacuum (analyze)');
  // Only a superuser may; without it a checkpoint may fall into somebody's round, which the median forgives.
  await sql.unsafe('checkpoint').catch(() => {});
}

async function describeRedis(redis: Redis): Promise<string> {
  const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'unknown';
  const [, appendonly] = (await redis.config('GET', 'appendonly')) as string[];
  if (appendonly !== 'yes') return `${version}, appendonly ${appendonly}`;
  const [, appendfsync] = (await redis.config('GET', 'appendfsync')) as string[];
  return `${version}, appendonly yes, appendfsync ${appendfsync}`;
}

async function removeKeys(redis: Redis, prefix: string): Promise<void> {
  // The server is shared with others: key by key, and never all of a database.
  for await (const found of redis.scanStream({ match: `${prefix}*`, count: 1_000 })) {
    if (found.length > 0) await redis.unlink(found);
  }
}

function requireLoopback(url: string): void {
  const { hostname } = new URL(url);
  if (!/^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(hostname)) {
    throw new Error(`${hostname} is not this machine: benchmarks run against servers on the loopback address only`);
  }
}
