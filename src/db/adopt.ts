import { type QueryWithTypings, SQL, type SQLWrapper } from 'drizzle-orm';
import { asThrown } from './errors.ts';
import type { RawColumn } from './raw.ts';
import type { Executor, SqlParam, Tx } from './types.ts';
import { isJsonType, readRows } from './values.ts';

/**
 * Runs Waymark's statements in a transaction that the caller opened on the same database: of Drizzle (over any driver),
 * of postgres.js, or Waymark's own. It is used as it is, never wrapped in another client.
 *
 * The caller's client has its own serializers: one that stringifies JSON would make a JSON string of a JSON text. So a
 * statement says `$1::text::json`: the parameter is a text to every client. Times that come back as Date are written as
 * text again, with milliseconds; a bigint becomes a number.
 *
 * @throws TypeError for anything else.
 */
export function adopt(tx: unknown): Executor {
  if (isWaymark(tx)) return tx;
  if (isDrizzle(tx)) return executor((text, params) => tx.execute(new Statement(text, params)));
  if (isPostgresJs(tx)) return executor((text, params) => tx.unsafe(text, [...params]));
  throw new TypeError(
    '`tx` must be a Drizzle transaction or a postgres.js transaction (what `sql.begin` gives to its function)',
  );
}

function isWaymark(tx: unknown): tx is Tx {
  return typeof tx === 'object' && tx !== null && 'kind' in tx && tx.kind === 'tx' && 'query' in tx;
}

interface DrizzleTx {
  execute(query: SQLWrapper): PromiseLike<unknown>;
}

interface PostgresJsTx {
  unsafe(text: string, params: SqlParam[]): PromiseLike<unknown>;
}

function isDrizzle(tx: unknown): tx is DrizzleTx {
  // `rollback` tells a transaction from a database, on which the statement would be a transaction of its own.
  return typeof tx === 'object' && tx !== null && 'execute' in tx && 'rollback' in tx && 'session' in tx;
}

function isPostgresJs(tx: unknown): tx is PostgresJsTx {
  // `savepoint` does the same here.
  return typeof tx === 'function' && 'unsafe' in tx && 'savepoint' in tx;
}

/**
 * A text with `$n` as an SQL object of Drizzle, rendered unchanged. Built from chunks instead, each use of `$1` would
 * become a parameter of its own, and one without a cast beside it has no type.
 */
class Statement extends SQL {
  readonly #query: QueryWithTypings;

  constructor(text: string, params: readonly SqlParam[]) {
    super([]);
    this.#query = { sql: text, params: [...params] };
  }

  override toQuery(): QueryWithTypings {
    return this.#query;
  }
}

type Send = (text: string, params: readonly SqlParam[]) => PromiseLike<unknown>;

function executor(send: Send): Executor {
  return {
    async query<Row>(text: string, params: readonly SqlParam[] = []): Promise<Row[]> {
      try {
        return normalized(await send(text, params)) as Row[];
      } catch (error) {
        throw asThrown(error);
      }
    },
  };
}

interface DriverResult {
  rows?: unknown[];
  /** postgres.js. */
  columns?: RawColumn[] | null;
  /** PGlite and node-postgres. */
  fields?: { name: string; dataTypeID: number }[];
}

/** postgres.js gives an array of rows with `columns`, PGlite and node-postgres an object with `rows` and `fields`. */
function normalized(result: unknown): unknown[] {
  const { rows, columns, fields } = result as DriverResult;
  const list = (Array.isArray(result) ? [...result] : (rows ?? [])).map(withTimesAsText);
  const types = columns ?? fields?.map((f) => ({ name: f.name, type: f.dataTypeID })) ?? [];
  // JSON was parsed by the client; a string is then a JSON string, not a text to parse.
  const readable = types.filter((column) => !isJsonType(column.type));
  readRows(list, readable);
  return list;
}

function withTimesAsText(row: unknown): unknown {
  return Object.fromEntries(Object.entries(row as object).map(([name, value]) => [name, timeAsText(value)]));
}

function timeAsText(value: unknown): unknown {
  if (!(value instanceof Date)) return value;
  return value.toISOString().replace('T', ' ').replace('Z', '+00');
}
