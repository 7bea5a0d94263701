import type { PgDatabase, PgQueryResultHKT, PgTransaction } from 'drizzle-orm/pg-core';

/** Drizzle on Waymark's database, Postgres or embedded alike. Users bring their own table types. */
// biome-ignore lint/suspicious/noExplicitAny: Drizzle's handle is generic over the user's tables
export type UserDb = PgDatabase<PgQueryResultHKT, any, any>;
/** A Drizzle transaction on Waymark's database. */
// biome-ignore lint/suspicious/noExplicitAny: as above
export type UserTx = PgTransaction<PgQueryResultHKT, any, any>;

/** What a statement may be given: lists travel as Postgres array texts (`db/sql.ts`), JSON as text. */
export type SqlParam = string | number | boolean | null;

/**
 * Runs statements. The text is constant per call site (it is prepared where the server allows), values come as
 * `$1, $2…`. Timestamps come back as text in UTC with microseconds, `json` parsed, bigint as number.
 */
export interface Executor {
  /**
   * @throws DatabaseError-shaped errors as classified by `db/errors.ts`; Unavailable when the store is away;
   *   InsideTransaction when a transaction is open in this async context and this is not it.
   */
  query<Row>(text: string, params?: readonly SqlParam[]): Promise<Row[]>;
}

/** A transaction that is open. */
export interface Tx extends Executor {
  readonly kind: 'tx';
  /** The same transaction for the user's own Drizzle queries. */
  readonly user: UserTx;
}

/** A database, outside any transaction. Every function of `db/` takes a `Db` or a `Tx` first; there is no handle to import. */
export interface Db extends Executor {
  readonly kind: 'db';
  /**
   * Runs `fn` in one transaction and commits. A deadlock (40P01) or serialization failure (40001) repeats the whole
   * of `fn`, a bounded number of times; so `fn` must not do anything outside `tx`.
   */
  transaction<T>(fn: (tx: Tx) => Promise<T>, options?: { timeoutMs?: number; retry?: boolean }): Promise<T>;
  /** For the user's own reads and writes outside a transaction. */
  readonly user: UserDb;
}

/**
 * Handles by purpose, so that nothing which may wait for a row lock stands in front of something else. Embedded, all
 * are the same single connection.
 */
export interface Database {
  readonly kind: 'postgres' | 'embedded';
  /** Submits and the verbs of clients. */
  readonly submit: Db;
  /** Claims, settles, checkpoints, progress, the user's transactions. */
  readonly work: Db;
  /** Beats only. */
  readonly beat: Db;
  /** API reads: read-only, with a statement timeout. */
  readonly read: Db;
  /** Staging, rescue, pruning. */
  readonly maintenance: Db;
  /** Opens a transaction wrapper around the caller's own Drizzle or postgres.js transaction. */
  adopt(tx: unknown): Executor;
  /** Waits for what is under way, then closes every connection. A second call does nothing. */
  close(): Promise<void>;
}
