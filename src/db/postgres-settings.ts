import type { Options, PostgresType } from 'postgres';
import type { Logger } from '../core/log.ts';

/**
 * What a pool is for; each has its own connections, so that none waits behind another. `user` is for statements of
 * handlers outside a transaction.
 */
export type Purpose = 'submit' | 'work' | 'beat' | 'read' | 'maintenance' | 'user';

export interface PoolOptions {
  url: string;
  purpose: Purpose;
  /** Connections at most. */
  size: number;
  /** False behind a pooler that gives each transaction another session (PgBouncer's transaction mode). */
  prepare: boolean;
  /** The longest time for one statement; undefined for no limit. */
  answerMs: number | undefined;
  /** The longest time between two statements of a transaction. */
  idleMs: number;
  applicationName: string;
  log: Logger;
}

const CONNECT_TIMEOUT_S = 5;
const IDLE_CLOSE_S = 60;
const MAX_BACKOFF_S = 1;

export function clientSettings(options: PoolOptions): Options<Record<string, PostgresType>> {
  const { purpose, prepare, log } = options;
  return {
    max: options.size,
    prepare,
    connect_timeout: CONNECT_TIMEOUT_S,
    // Else each connection starts with a query for readers of arrays; values.ts has better ones.
    fetch_types: false,
    // Connections are given back when there is nothing to do.
    idle_timeout: IDLE_CLOSE_S,
    backoff: (tries: number) => Math.min(2 ** tries / 20, MAX_BACKOFF_S) * (0.5 + Math.random() / 2),
    onnotice: (notice) => log.debug({ notice }, 'notice from Postgres'),
    types: TYPES,
    connection: {
      application_name: `${options.applicationName} ${purpose}`,
      TimeZone: 'UTC',
      // A pooler refuses start parameters that it does not know.
      ...(prepare ? sessionLimits(options) : {}),
    },
  };
}

/**
 * The statements of transitions are written so that they have one plan only, by indexes; making it anew for each call
 * takes longer than running it, and one that is kept from a moment when the tables were empty must not be a scan of the
 * whole. (`jit` would be drawn in by the cost that stands for "off".)
 */
const ONE_PLAN = { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off', jit: 'off' };
/** The best plan of a list depends on its filters' values: one made for all of them scans a million rows. */
const PLAN_EACH = { plan_cache_mode: 'force_custom_plan', jit: 'off' };

function planning(purpose: Purpose) {
  if (purpose === 'user') return {};
  return purpose === 'read' ? PLAN_EACH : ONE_PLAN;
}

function sessionLimits({ purpose, answerMs, idleMs }: PoolOptions) {
  return {
    idle_in_transaction_session_timeout: Math.ceil(idleMs),
    ...(answerMs === undefined ? {} : { statement_timeout: answerMs }),
    ...(purpose === 'read' ? { default_transaction_read_only: true } : {}),
    ...planning(purpose),
  };
}

const asIs = (text: string) => text;
const jsonText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
const timeText = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value));

/**
 * Texts go to the server and come back as they are (a driver that stringifies JSON text makes a JSON string of it, and
 * a Date has no microseconds). An object or a Date, which only a user's own raw statement gives, is written as text.
 */
const TYPES: Record<string, PostgresType> = {
  bigint: { to: 20, from: [20], serialize: String, parse: asIs },
  json: { to: 114, from: [114, 3802], serialize: jsonText, parse: asIs },
  date: { to: 1184, from: [1082, 1114, 1184], serialize: timeText, parse: asIs },
};
