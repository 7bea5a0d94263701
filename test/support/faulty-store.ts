import { Unavailable } from '../../src/core/errors.ts';
import type { Database, Db, SqlParam, Tx } from '../../src/db/types.ts';
import type { Store, TestDatabase } from './database.ts';
import { seededRandom } from './random.ts';

/**
 * What may happen to a call of the store. The caller is told Unavailable each time and cannot tell which it was:
 * - refused: nothing was sent;
 * - timed out: it was sent, and rolled back;
 * - lost answer: it was done and committed, and only the answer is missing. Code that repeats a call without asking
 *   whether the first one was done shows here.
 */
export const FAULTS = ['refused', 'timed out', 'lost answer'] as const;
export type Fault = (typeof FAULTS)[number];

const HANDLES = ['submit', 'work', 'beat', 'read', 'maintenance'] as const satisfies readonly (keyof Database)[];

export type Handle = (typeof HANDLES)[number];

/** One statement outside a transaction, or one whole transaction. */
export interface StoreCall {
  readonly handle: Handle;
  readonly kind: 'query' | 'transaction';
}

/** Says what is to happen to a call; null: nothing out of the ordinary. */
export type FaultPlan = (call: StoreCall) => Fault | null;

/** How likely each fault is, from 0 to 1. */
export type FaultRates = Readonly<Record<Fault, number>>;

/** How often each fault was met at each handle, for a trial to show that it was one. */
export type FaultCounts = Record<Handle, Record<Fault, number>>;

/**
 * `database` with the faults of `plan` at all its handles. What a user reads and writes through Drizzle (`user`) is left
 * alone, as is everything inside an open transaction: a transaction fails as a whole, before, at or behind its end.
 */
export function faultyDatabase<D extends Database>(database: D, plan: FaultPlan): D {
  const handles = HANDLES.map((name) => [name, new FaultyDb(database[name], name, plan)]);
  return { ...database, ...Object.fromEntries(handles) };
}

/** Faults by chance; `counts` tells how many there were. */
export function randomFaults(rates: FaultRates, random: () => number): { plan: FaultPlan; counts: FaultCounts } {
  const none = () => ({ refused: 0, 'timed out': 0, 'lost answer': 0 });
  const counts: FaultCounts = { submit: none(), work: none(), beat: none(), read: none(), maintenance: none() };
  const plan: FaultPlan = ({ handle }) => {
    let left = random();
    for (const fault of FAULTS) {
      left -= rates[fault];
      if (left >= 0) continue;
      counts[handle][fault]++;
      return fault;
    }
    return null;
  };
  return { plan, counts };
}

/** The same rate for each of the three faults. */
export function eachFault(rate: number): FaultRates {
  return { refused: rate, 'timed out': rate, 'lost answer': rate };
}

export interface FaultyDatabase extends TestDatabase {
  /** The same database without faults: for what a test itself reads and writes. */
  readonly reliable: TestDatabase;
  readonly counts: Readonly<FaultCounts>;
}

export interface FaultyStore extends Store {
  open(...options: Parameters<Store['open']>): Promise<FaultyDatabase>;
}

/**
 * A store whose databases have faults by chance, to run a suite on:
 * `describe.each(databases().map((store) => faulty(store, eachFault(0.05))))`.
 * @param random the chance; left out, it is seeded and its seed printed, once for each database
 */
export function faulty(store: Store, rates: FaultRates, random?: () => number): FaultyStore {
  return {
    name: store.name,
    async open(options) {
      const reliable = await store.open(options);
      const { plan, counts } = randomFaults(rates, random ?? seededRandom());
      return { ...faultyDatabase(reliable, plan), reliable, counts };
    },
  };
}

class FaultyDb implements Db {
  readonly kind = 'db';
  readonly #db: Db;
  readonly #handle: Handle;
  readonly #plan: FaultPlan;

  constructor(db: Db, handle: Handle, plan: FaultPlan) {
    this.#db = db;
    this.#handle = handle;
    this.#plan = plan;
  }

  get user(): Db['user'] {
    return this.#db.user;
  }

  async query<Row>(text: string, params: readonly SqlParam[] = []): Promise<Row[]> {
    switch (this.#plan({ handle: this.#handle, kind: 'query' })) {
      case null:
        return this.#db.query<Row>(text, params);
      case 'refused':
        throw refused();
      case 'timed out':
        return this.#rolledBack((tx) => tx.query<Row>(text, params));
      case 'lost answer':
        await this.#db.query<Row>(text, params);
        throw lostAnswer();
    }
  }

  async transaction<T>(...[fn, options]: Parameters<Db['transaction']>): Promise<T> {
    const run = fn as (tx: Tx) => Promise<T>;
    switch (this.#plan({ handle: this.#handle, kind: 'transaction' })) {
      case null:
        return this.#db.transaction(run, options);
      case 'refused':
        throw refused();
      case 'timed out':
        return this.#rolledBack(run, options);
      case 'lost answer':
        await this.#db.transaction(run, options);
        throw lostAnswer();
    }
  }

  /** What `fn` itself throws is its caller's: it came before the end of the transaction, where this fault sits. */
  async #rolledBack<T>(fn: (tx: Tx) => Promise<T>, options?: Parameters<Db['transaction']>[1]): Promise<never> {
    const timedOut = new Unavailable('the store did not answer in time and the call was stopped (an injected fault)');
    return this.#db.transaction<never>(async (tx) => {
      await fn(tx);
      throw timedOut;
    }, options);
  }
}

function refused(): Unavailable {
  return new Unavailable('the store refused the call (an injected fault)');
}

function lostAnswer(): Unavailable {
  return new Unavailable('the store did the work, and its answer was lost (an injected fault)');
}
