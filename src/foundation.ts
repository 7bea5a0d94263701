import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from './config.ts';
import { formatDuration } from './core/duration.ts';
import { Unavailable } from './core/errors.ts';
import type { Logger } from './core/log.ts';
import { migrate, withSetupLock } from './db/migrate.ts';
import { type OpenDatabase, openDatabase } from './db/open.ts';
import { settingWarnings } from './db/server-settings.ts';
import type { UserDb } from './db/types.ts';
import { createEngine, type Engine } from './engine/engine.ts';
import type { LiveChannel } from './events/channel.ts';
import { createMemoryChannel } from './events/memory.ts';
import { createRedisChannel } from './events/redis.ts';

/** A user's own tables; runs once at each start, under the lock of the migrations. */
export type Setup = (context: { db: UserDb }) => unknown;

/** What every program stands on: the store, migrated and reachable, the live channel and the use cases. */
export interface Foundation {
  readonly config: Config;
  readonly log: Logger;
  readonly database: OpenDatabase;
  readonly channel: LiveChannel;
  readonly engine: Engine;
  /** Runs a step of the start, again and again while the database is away. @throws Unavailable after a minute without it */
  whenReachable<T>(step: () => Promise<T>): Promise<T>;
  /** Gives everything back, the newest first. A second call does nothing. */
  close(): Promise<void>;
}

export interface FoundationOptions {
  log: Logger;
  setup?: Setup | undefined;
  /** Ends the wait for a database that is away. */
  signal?: AbortSignal | undefined;
}

/** How long a start waits for a database that is away: it may be starting too. */
const WAIT_FOR_DATABASE_MS = 60_000;

/**
 * Opens the store, brings it up to date and runs `setup`.
 * @throws DataDirInUse, IncompatibleDatabase, Unavailable after a minute without the database
 */
export async function openFoundation(config: Config, { log, setup, signal }: FoundationOptions): Promise<Foundation> {
  const database = await openDatabase({
    ...(config.databaseUrl === null ? { dataDir: config.dataDir } : { url: config.databaseUrl }),
    answerMs: answerMs(config.leaseMs),
    idleMs: config.leaseMs,
    log,
  });
  let channel: LiveChannel | undefined;
  let closing: Promise<void> | undefined;
  const reachable = <T>(step: () => Promise<T>): Promise<T> => whenReachable(step, log, signal);
  const close = async () => {
    await channel?.close();
    await database.close();
  };
  try {
    await reachable(() => migrate(database.maintenance, { log }));
    for (const warning of await settingWarnings(database).catch(() => [])) log.warn({}, warning);
    if (setup) {
      await reachable(() => withSetupLock(database, async () => void (await setup({ db: database.work.user }))));
    }
    channel =
      config.redisUrl === null ? createMemoryChannel({ log }) : createRedisChannel({ url: config.redisUrl, log });
  } catch (error) {
    await close();
    throw error;
  }
  const { leaseMs, sweepMs, priorityStepMs, retainMs, maxBytes } = config;
  const options = { leaseMs, sweepMs, priorityStepMs, retainMs: { ...retainMs }, maxBytes: { ...maxBytes } };
  const artifacts = {
    // A database in memory has no directory; its artifacts are in it.
    directory:
      config.databaseUrl === null && !config.dataDir.startsWith('memory://') ? join(config.dataDir, 'artifacts') : null,
    s3: config.s3 && { ...config.s3 },
  };
  const engine = createEngine({ database, channel, options, artifacts, log });
  // Nobody else can own the directory: whoever ran jobs in it before is dead, and no lease need be waited for.
  if (database.kind === 'embedded') await engine.maintenance.recover();
  return {
    config,
    log,
    database,
    channel,
    engine,
    whenReachable: reachable,
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/**
 * A beat must leave time for another one over a new connection within the lease; a worker's other statements need not be
 * waited for much longer than the lease that they are made under.
 */
function answerMs(leaseMs: number) {
  return { beat: Math.min(4_000, leaseMs / 3), work: Math.min(30_000, Math.max(5_000, leaseMs)) };
}

async function whenReachable<T>(step: () => Promise<T>, log: Logger, signal: AbortSignal | undefined): Promise<T> {
  const until = performance.now() + WAIT_FOR_DATABASE_MS;
  for (let tries = 0; ; tries++) {
    try {
      return await step();
    } catch (error) {
      if (!(error instanceof Unavailable) || performance.now() > until) throw error;
      if (tries % 5 === 0) {
        log.warn(
          { err: error },
          `the database cannot be reached; waiting up to ${formatDuration(WAIT_FOR_DATABASE_MS)}`,
        );
      }
    }
    await sleep(1_000, undefined, { signal });
  }
}
