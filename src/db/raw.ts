/**
 * What the two drivers are reduced to. Both give every value in one raw form: numbers for the small numeric types,
 * booleans and byte arrays as such, and text as Postgres prints it for everything else, JSON, bigint and timestamps
 * among them. `values.ts` makes of that what the caller is promised.
 */
export interface RawColumn {
  name: string;
  /** The type's oid. */
  type: number;
}

export interface RawResult {
  columns: readonly RawColumn[];
  /** Objects by column name, or arrays by position. */
  rows: unknown[];
  /** Rows returned or written; null where that means nothing. */
  count: number | null;
}

export interface RawOptions {
  as: 'objects' | 'arrays';
  /** True for a text that is used again and again: the server may keep it prepared. */
  prepare: boolean;
}

export interface RawRunner {
  /** Without params, `text` may be several statements; then the result is the last one's. */
  run(text: string, params: readonly unknown[], options: RawOptions): Promise<RawResult>;
}

/** A connection inside a transaction. */
export interface RawTx extends RawRunner {
  /** Runs `fn` under a savepoint; rolls back to it when `fn` fails. */
  savepoint<T>(fn: (inner: RawTx) => Promise<T>): Promise<T>;
}

/** Connections of one purpose. */
export interface RawPool extends RawRunner {
  /**
   * BEGIN, `fn`, COMMIT, or ROLLBACK when `fn` fails. Rejects when any statement outside a savepoint failed, even if
   * `fn` hid it: nothing was committed then.
   */
  begin<T>(fn: (tx: RawTx) => Promise<T>, options: { timeoutMs?: number }): Promise<T>;
}
