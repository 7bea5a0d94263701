import { DrizzleQueryError, is, NoopLogger, type Query } from 'drizzle-orm';
import { NoopCache } from 'drizzle-orm/cache/core';
import {
  PgArray,
  PgDatabase,
  PgDialect,
  PgJson,
  PgJsonb,
  type PgPreparedQuery,
  type PgQueryResultHKT,
  PgSession,
  PgTransaction,
  type PgTransactionConfig,
  type PreparedQueryConfig,
  type SelectedFieldsOrdered,
} from 'drizzle-orm/pg-core';
import { PostgresJsPreparedQuery } from 'drizzle-orm/postgres-js';
import type { Sql } from 'postgres';
import { WaymarkError } from '../core/errors.ts';
import type { RawOptions, RawResult, RawRunner, RawTx } from './raw.ts';
import type { UserDb, UserTx } from './types.ts';
import { readUserArrays, readUserRows } from './values.ts';

/** What the user's Drizzle needs outside a transaction. */
export interface UserRunner extends RawRunner {
  begin<T>(fn: (tx: RawTx) => Promise<T>): Promise<T>;
}

/**
 * Drizzle for a user's own code, the same on both stores. It is built here, not by `drizzle({ client })`: that rewrites
 * the client's parsers and serializers (a plain object as a parameter then throws), cannot be given an open postgres.js
 * transaction, parses a JSON string twice, and gives other values for the same query on each store.
 */
export function userDb(runner: UserRunner): UserDb {
  return new PgDatabase(dialect, new UserSession(runner, (fn) => runner.begin(fn)), undefined);
}

/** Drizzle inside a transaction that is open; its own `transaction()` is a savepoint. */
export function userTx(tx: RawTx): UserTx {
  return new UserTransaction(dialect, new UserSession(tx, (fn) => tx.savepoint(fn)), undefined);
}

const dialect = new PgDialect();
const logger = new NoopLogger();
const cache = new NoopCache();

// biome-ignore lint/suspicious/noExplicitAny: the user's tables are unknown here, as in types.ts
type AnySchema = any;
type Opener = <T>(fn: (tx: RawTx) => Promise<T>) => Promise<T>;
type Work<T> = (tx: PgTransaction<PgQueryResultHKT, AnySchema, AnySchema>) => Promise<T>;

class UserSession extends PgSession<PgQueryResultHKT, AnySchema, AnySchema> {
  readonly #runner: RawRunner;
  readonly #open: Opener;

  constructor(runner: RawRunner, open: Opener) {
    super(dialect);
    this.#runner = runner;
    this.#open = open;
  }

  override prepareQuery<T extends PreparedQueryConfig>(
    query: Query,
    fields: SelectedFieldsOrdered | undefined,
    name: string | undefined,
    isArrayMode: boolean,
    mapRows?: (rows: unknown[][]) => T['execute'],
    metadata?: { type: 'select' | 'update' | 'delete' | 'insert'; tables: string[] },
  ): PgPreparedQuery<T> {
    const client = clientFor(this.#runner, fields);
    const { sql, params } = query;
    const prepare = name !== undefined;
    return new UserQuery<T>(
      client,
      sql,
      params,
      logger,
      cache,
      metadata,
      undefined,
      fields,
      isArrayMode,
      prepare,
      mapRows,
    );
  }

  override transaction<T>(work: Work<T>, config?: PgTransactionConfig): Promise<T> {
    return this.#open(async (raw) => {
      const tx = userTx(raw);
      if (config !== undefined) await tx.setTransaction(config);
      return work(tx);
    });
  }
}

class UserTransaction extends PgTransaction<PgQueryResultHKT, AnySchema, AnySchema> {
  override transaction<T>(work: Work<T>): Promise<T> {
    return this._.session.transaction(work);
  }
}

class UserQuery<T extends PreparedQueryConfig> extends PostgresJsPreparedQuery<T> {
  override async execute(values?: Record<string, unknown>): Promise<T['execute']> {
    try {
      return await super.execute(values);
    } catch (error) {
      // Drizzle wraps whatever a statement rejects with; ours are for the caller to recognise.
      throw error instanceof DrizzleQueryError && error.cause instanceof WaymarkError ? error.cause : error;
    }
  }
}

/** The two ways in which Drizzle's query uses its client: awaited for objects, or `.values()` for arrays to be mapped. */
function clientFor(runner: RawRunner, fields: SelectedFieldsOrdered | undefined): Sql {
  const client = {
    unsafe(text: string, params: unknown[], { prepare }: { prepare: boolean }) {
      const run = (as: RawOptions['as']) => runner.run(text, params, { as, prepare });
      return {
        // biome-ignore lint/suspicious/noThenProperty: postgres.js queries are thenables that start when awaited
        then: <A, B>(resolve: (rows: unknown) => A, reject: (error: unknown) => B) =>
          run('objects').then(asRowList).then(resolve, reject),
        values: async () => mappable(await run('arrays'), fields),
      };
    },
  };
  return client as unknown as Sql;
}

/** The rows of a raw statement: an array as from postgres.js that also has PGlite's `rows`, so that code fits both. */
function asRowList({ rows, columns, count }: RawResult): unknown[] {
  readUserRows(rows, columns);
  return Object.defineProperties([...rows], {
    rows: { get: () => rows },
    count: { value: count },
    rowCount: { value: count },
  });
}

/** A selected JSON column is left as text, since its Drizzle column parses that; JSON of an expression is parsed here. */
function mappable({ rows, columns }: RawResult, fields: SelectedFieldsOrdered | undefined): unknown[][] {
  const arrays = rows as unknown[][];
  readUserArrays(arrays, columns, (index) => fields === undefined || isJsonColumn(fields[index]?.field));
  return arrays;
}

function isJsonColumn(field: unknown): boolean {
  if (is(field, PgArray)) return isJsonColumn(field.baseColumn);
  return is(field, PgJson) || is(field, PgJsonb);
}
