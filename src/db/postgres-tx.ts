import type { Sql, TransactionSql } from 'postgres';
import { Unavailable } from '../core/errors.ts';
import { isConnectionError } from './errors.ts';
import type { RawOptions, RawResult, RawTx } from './raw.ts';

/** Fails when `promise` is not settled in time. */
type Watch = <T>(promise: Promise<T>) => Promise<T>;

/** The connection under one transaction: whether it can still be used, and that its every answer comes in time. */
export class Connection {
  /** Why it cannot be used any more. */
  lost: unknown;
  readonly #watch: Watch;
  readonly #gone = deferred<never>();
  readonly #begun = deferred<void>();
  readonly #ending = deferred<void>();

  constructor(watch: Watch) {
    this.#watch = watch;
    this.#gone.promise.catch(() => {});
  }

  /** BEGIN was answered. */
  begun(): void {
    this.#begun.resolve();
  }

  /** The transaction's function is `outcome`; what follows it is COMMIT or ROLLBACK. */
  ending<T>(outcome: Promise<T>): Promise<T> {
    return this.unlessLost(outcome.finally(() => this.#ending.resolve()));
  }

  /**
   * `outcome` for postgres.js, which then sends COMMIT, ROLLBACK or the like. When the connection is gone that would end
   * the whole process (it writes to a socket that is null), so then it never learns of the outcome.
   */
  unlessLost<T>(outcome: Promise<T>): Promise<T> {
    return outcome.finally(() => (this.lost === undefined ? undefined : new Promise(() => {})));
  }

  /** `promise`, or at once the loss of the connection. */
  orGone<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.#gone.promise]);
  }

  async answered<T>(promise: Promise<T>): Promise<T> {
    try {
      return await this.#watch(promise);
    } catch (error) {
      if (error instanceof Unavailable || isConnectionError(error)) this.#lose(error);
      throw error;
    }
  }

  /** The outcome of the transaction, or at once the loss of its connection, whatever its function waits for. */
  follow<T>(done: Promise<T>): Promise<T> {
    done.catch((error) => this.#lose(error));
    const phases = async () => {
      await this.answered(Promise.race([this.#begun.promise, done]));
      await Promise.race([this.#ending.promise, done]);
      return this.answered(done);
    };
    return this.orGone(phases());
  }

  #lose(error: unknown): void {
    this.lost ??= error;
    this.#gone.reject(error);
  }
}

export class PostgresTx implements RawTx {
  readonly #sql: TransactionSql;
  readonly #prepare: boolean;
  readonly #connection: Connection;

  constructor(sql: TransactionSql, prepare: boolean, connection: Connection) {
    this.#sql = sql;
    this.#prepare = prepare;
    this.#connection = connection;
  }

  async run(text: string, params: readonly unknown[], options: RawOptions): Promise<RawResult> {
    this.#refuseLost();
    const sent = runOn(this.#sql, text, params, options, { prepare: options.prepare && this.#prepare });
    return this.#connection.answered(sent);
  }

  async savepoint<T>(fn: (inner: RawTx) => Promise<T>): Promise<T> {
    this.#refuseLost();
    const connection = this.#connection;
    const body = (sql: TransactionSql) => connection.unlessLost(fn(new PostgresTx(sql, this.#prepare, connection)));
    return connection.orGone(this.#sql.savepoint(body) as Promise<T>);
  }

  /** postgres.js would send it over a connection that is closed, or that by now serves somebody else. */
  #refuseLost(): void {
    if (this.#connection.lost !== undefined) throw this.#connection.lost;
  }
}

interface DriverResult extends Array<unknown> {
  columns: { name: string; type: number }[] | null;
  count: number | null;
}

export async function runOn(
  sql: Sql | TransactionSql,
  text: string,
  params: readonly unknown[],
  { as }: RawOptions,
  options: { prepare: boolean },
): Promise<RawResult> {
  const query = sql.unsafe(text, params as never[], options);
  const result = (await (as === 'arrays' ? query.values() : query)) as unknown as DriverResult | DriverResult[];
  // Several statements in one text give several results; the list of them has no columns of its own.
  const last = 'columns' in result ? result : (result.at(-1) as DriverResult);
  return { rows: withoutHoles(last), columns: last.columns ?? [], count: last.count };
}

/**
 * postgres.js goes on counting rows where a statement failed, or its connection broke, behind the first of them: so many
 * places of the connection's next result are empty, and its rows stand behind these.
 */
function withoutHoles(rows: readonly unknown[]): unknown[] {
  // `filter` passes over places that were never filled.
  return 0 in rows ? rows.slice() : rows.filter(() => true);
}

function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((res, rej) => {
    resolve = res;
    reject = rej;
  });
  return { promise, resolve, reject };
}
