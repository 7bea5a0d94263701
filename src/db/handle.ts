import { setTimeout as sleep } from 'node:timers/promises';
import { Unavailable } from '../core/errors.ts';
import { asThrown, isRetryable, isStalePlan, sqlState } from './errors.ts';
import { insideTransaction, refuseInsideTransaction } from './inside-transaction.ts';
import type { RawOptions, RawPool, RawResult, RawRunner, RawTx } from './raw.ts';
import type { Db, SqlParam, Tx, UserDb, UserTx } from './types.ts';
import { userDb, userTx } from './user.ts';
import { readRows } from './values.ts';

/** How often a transaction is run before a deadlock or a serialization failure is given to the caller. */
const MAX_RUNS = 5;
const RETRY_DELAY_MS = 10;
const OWN: RawOptions = { as: 'objects', prepare: true };

/** A `Db` over the connections of one purpose. `owner` is the database: one mark for all its handles. */
export class DbHandle implements Db {
  readonly kind = 'db';
  readonly #pool: RawPool;
  readonly #owner: object;
  readonly #userPool: RawPool;
  #user: UserDb | undefined;

  constructor(pool: RawPool, owner: object, userPool: RawPool = pool) {
    this.#pool = pool;
    this.#owner = owner;
    this.#userPool = userPool;
  }

  async query<Row>(text: string, params: readonly SqlParam[] = []): Promise<Row[]> {
    refuseInsideTransaction(this.#owner);
    return rowsOf<Row>(this.#pool, text, params);
  }

  async transaction<T>(fn: (tx: Tx) => Promise<T>, options: { timeoutMs?: number; retry?: boolean } = {}): Promise<T> {
    refuseInsideTransaction(this.#owner);
    return this.#begin<TxHandle, T>(this.#pool, (raw) => new TxHandle(raw), fn, options);
  }

  get user(): UserDb {
    this.#user ??= userDb({
      run: async (text, params, options) => {
        refuseInsideTransaction(this.#owner);
        return thrown(this.#userPool.run(text, params, options));
      },
      // The user's function is run once: nothing says that it may be repeated.
      begin: async (fn) => {
        refuseInsideTransaction(this.#owner);
        return this.#begin(this.#userPool, (raw) => new OpenTx(raw), fn, { retry: false });
      },
    });
    return this.#user;
  }

  async #begin<H extends OpenTx, T>(
    pool: RawPool,
    open: (raw: RawTx) => H,
    fn: (tx: H) => Promise<T>,
    { timeoutMs, retry = true }: { timeoutMs?: number; retry?: boolean },
  ): Promise<T> {
    for (let run = 1; ; run++) {
      try {
        return await this.#beginOnce(pool, open, fn, timeoutMs);
      } catch (error) {
        if (!retry || run >= MAX_RUNS || !(isRetryable(error) || isStalePlan(error))) throw error;
      }
      await sleep(RETRY_DELAY_MS * run * (0.5 + Math.random()));
    }
  }

  async #beginOnce<H extends OpenTx, T>(
    pool: RawPool,
    open: (raw: RawTx) => H,
    fn: (tx: H) => Promise<T>,
    timeoutMs: number | undefined,
  ): Promise<T> {
    const body = async (raw: RawTx) => {
      const tx = open(raw);
      try {
        return await insideTransaction(this.#owner, () => withDeadline(fn(tx), timeoutMs));
      } finally {
        tx.end();
      }
    };
    return tellingApart(body, (noted) => pool.begin(noted, timeoutMs === undefined ? {} : { timeoutMs }));
  }
}

/** A transaction while it is open; every statement through it is refused once it has ended. */
class OpenTx implements RawTx {
  readonly #raw: RawTx;
  #ended = false;

  constructor(raw: RawTx) {
    this.#raw = raw;
  }

  async run(text: string, params: readonly unknown[], options: RawOptions): Promise<RawResult> {
    this.#refuseEnded();
    return thrown(this.#raw.run(text, params, options));
  }

  async savepoint<T>(fn: (inner: RawTx) => Promise<T>): Promise<T> {
    this.#refuseEnded();
    const body = async (raw: RawTx) => {
      const inner = new OpenTx(raw);
      return fn(inner).finally(() => inner.end());
    };
    return tellingApart(body, (noted) => this.#raw.savepoint(noted));
  }

  end(): void {
    this.#ended = true;
  }

  #refuseEnded(): void {
    if (this.#ended) throw new Error('this transaction has ended');
  }
}

class TxHandle extends OpenTx implements Tx {
  readonly kind = 'tx';
  #user: UserTx | undefined;

  query<Row>(text: string, params: readonly SqlParam[] = []): Promise<Row[]> {
    return rowsOf<Row>(this, text, params);
  }

  get user(): UserTx {
    this.#user ??= userTx(this);
    return this.#user;
  }
}

async function rowsOf<Row>(runner: RawRunner, text: string, params: readonly SqlParam[]): Promise<Row[]> {
  const { rows, columns } = await thrown(runner.run(text, params, OWN));
  readRows(rows, columns);
  return rows as Row[];
}

async function thrown<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw asThrown(error);
  }
}

/**
 * What `fn` throws is the caller's own and thrown as it is, also when it looks like a lost connection (to somewhere
 * else); unless it says only that an earlier statement had failed, which the store knows better.
 */
async function tellingApart<T>(
  fn: (tx: RawTx) => Promise<T>,
  open: (fn: (tx: RawTx) => Promise<T>) => Promise<T>,
): Promise<T> {
  let ofFn: { error: unknown } | undefined;
  const noted = async (tx: RawTx) => {
    try {
      return await fn(tx);
    } catch (error) {
      ofFn = { error };
      throw error;
    }
  };
  try {
    return await open(noted);
  } catch (error) {
    throw ofFn === undefined || sqlState(ofFn.error) === '25P02' ? asThrown(error) : ofFn.error;
  }
}

/** A transaction holds locks, embedded the whole database: past its time it is rolled back whatever `fn` waits for. */
async function withDeadline<T>(work: Promise<T>, timeoutMs: number | undefined): Promise<T> {
  if (timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY) return work;
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Unavailable(`the transaction was not finished after ${timeoutMs} ms and was rolled back`)),
      timeoutMs,
    );
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
