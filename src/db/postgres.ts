import { setTimeout as sleep } from 'node:timers/promises';
import postgres, { type Sql, type TransactionSql } from 'postgres';
import { Unavailable } from '../core/errors.ts';
import { isCut, sqlState } from './errors.ts';
import { clientSettings, type PoolOptions } from './postgres-settings.ts';
import { Connection, PostgresTx, runOn } from './postgres-tx.ts';
import type { RawOptions, RawPool, RawResult, RawTx } from './raw.ts';
import { Slots } from './slots.ts';

/** The server stops a statement at its own limit; only one that cannot even say so is given up by this process. */
const MAX_MARGIN_MS = 5_000;
const marginMs = (answerMs: number) => Math.min(MAX_MARGIN_MS, answerMs / 4);
/** For the statements that still run on a client which was given up. */
const RETIRE_MS = 60_000;
/** How long `close` waits for what is under way. */
const CLOSE_MS = 2_000;
/** Waits before a read is sent again: the driver takes a connection for open until the server, which ends it, has done so. */
const CUT_MS = [20, 100, 300];
/** postgres.js waits for the answer of a connection that was lost; nothing is under way any more when it is asked. */
const END = { timeout: 0.2 };
/** Limits above this mean none: neither a timer nor Postgres takes more milliseconds. */
const MAX_MS = 2 ** 31 - 1 - MAX_MARGIN_MS;

/**
 * postgres.js sends a statement behind one that still runs when it has no free connection (and `max_pipeline: 0` breaks
 * its `begin`); one that waits for a row lock would hold up a stranger. The slots leave it no need to, and the hook by
 * which `begin` reserves its connection says "full" here, for the moment in which an idle connection is being closed.
 */
const ALONE = { onexecute: () => false };

/** The connections of one purpose, by postgres.js. */
export class PostgresPool implements RawPool {
  #options: PoolOptions;
  /** As many statements or transactions at once as there are connections: nothing is sent behind another. */
  readonly #slots: Slots;
  readonly #retired = new Set<Sql>();
  #sql: Sql;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#slots = new Slots(options.size);
    this.#sql = postgres(options.url, clientSettings(options));
  }

  run(text: string, params: readonly unknown[], options: RawOptions): Promise<RawResult> {
    return this.#orAsPooled(() => this.#runOrAgain(text, params, options));
  }

  begin<T>(fn: (tx: RawTx) => Promise<T>, { timeoutMs }: { timeoutMs?: number }): Promise<T> {
    return this.#orAsPooled(async () => {
      const leave = await this.#enter(limit(timeoutMs ?? this.#options.answerMs));
      return this.#begin(this.#sql, fn, timeoutMs).finally(leave);
    });
  }

  /** Waits for what is under way, but not for ever. */
  async close(): Promise<void> {
    this.#closed = true;
    const late = new AbortController();
    const timeUp = sleep(CLOSE_MS, undefined, { signal: late.signal }).catch(() => {});
    await Promise.race([this.#slots.whenIdle(), timeUp]);
    late.abort();
    await Promise.all([this.#sql, ...this.#retired].map((sql) => sql.end(END)));
  }

  /** A read does nothing, so one whose connection is lost under it is sent again: its caller need not know. */
  async #runOrAgain(text: string, params: readonly unknown[], options: RawOptions): Promise<RawResult> {
    for (const waitMs of this.#options.purpose === 'read' ? CUT_MS : []) {
      try {
        return await this.#run(text, params, options);
      } catch (error) {
        if (!isCut(error)) throw error;
      }
      await sleep(waitMs);
    }
    return this.#run(text, params, options);
  }

  async #run(text: string, params: readonly unknown[], options: RawOptions): Promise<RawResult> {
    const { purpose, prepare, answerMs } = this.#options;
    // Behind a pooler no session can be made read-only or given a limit; each read is told so in a transaction.
    if (purpose === 'read' && !prepare) {
      return this.begin((tx) => tx.run(text, params, options), { timeoutMs: answerMs });
    }
    const leave = await this.#enter(answerMs);
    const sql = this.#sql;
    const sent = runOn(sql, text, params, options, { prepare: options.prepare && prepare, ...ALONE });
    return this.#answered(sql, sent, answerMs).finally(leave);
  }

  /** A pooler shows itself by refusing a connection for its start parameters, before anything was sent over it. */
  async #orAsPooled<T>(call: () => Promise<T>): Promise<T> {
    const sql = this.#sql;
    try {
      return await call();
    } catch (error) {
      if (!isPoolerRefusal(error) || (this.#sql === sql && !this.#options.prepare)) throw error;
      if (this.#sql === sql) {
        this.#options.log.info(
          { purpose: this.#options.purpose },
          'a pooler answers: nothing is prepared or kept in sessions',
        );
        this.#options = { ...this.#options, prepare: false };
        this.#replace(sql);
      }
      return call();
    }
  }

  #enter(waitMs: number | undefined): Promise<() => void> {
    if (this.#closed) throw new Unavailable('the store is closed');
    return this.#slots.take(waitMs);
  }

  #begin<T>(sql: Sql, fn: (tx: RawTx) => Promise<T>, timeoutMs: number | undefined): Promise<T> {
    const { purpose, prepare, idleMs } = this.#options;
    const answerMs = limit(timeoutMs ?? this.#options.answerMs);
    const connection = new Connection((promise) => this.#answered(sql, promise, answerMs));
    const body = async (inside: TransactionSql) => {
      connection.begun();
      // Not awaited: it goes before the first statement on the same connection, and its failure fails the transaction.
      const limits = timeoutMs === undefined ? (prepare ? undefined : idleText(idleMs)) : limitsText(timeoutMs);
      if (limits !== undefined) inside.unsafe(limits).catch(() => {});
      return connection.ending(fn(new PostgresTx(inside, prepare, connection)));
    };
    return connection.follow(sql.begin(purpose === 'read' ? 'read only' : '', body) as Promise<T>);
  }

  /** A server that vanished leaves connections on which nothing is ever answered; new ones take their place. */
  async #answered<T>(sql: Sql, promise: Promise<T>, answerMs: number | undefined): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let silent = false;
    const silence = new Promise<never>((_, reject) => {
      if (answerMs === undefined) return;
      const ms = answerMs + marginMs(answerMs);
      timer = setTimeout(() => {
        silent = true;
        reject(new Unavailable(`the store did not answer for ${ms} ms; try again`));
      }, ms);
    });
    try {
      return await Promise.race([promise, silence]);
    } catch (error) {
      // After a lost connection postgres.js can be left with one that never opens again; its sign is this timeout.
      if (silent || (error as { code?: unknown }).code === 'CONNECT_TIMEOUT') this.#giveUp(sql);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #giveUp(sql: Sql): void {
    if (this.#sql !== sql || this.#closed) return;
    this.#options.log.warn({ purpose: this.#options.purpose }, 'Postgres does not answer; using new connections');
    this.#replace(sql);
  }

  #replace(sql: Sql): void {
    this.#sql = postgres(this.#options.url, clientSettings(this.#options));
    this.#retired.add(sql);
    sleep(RETIRE_MS, undefined, { ref: false })
      .then(() => sql.end(END))
      .then(() => this.#retired.delete(sql));
  }
}

function isPoolerRefusal(error: unknown): boolean {
  return sqlState(error) === '08P01' && error instanceof Error && error.message.includes('startup parameter');
}

function limit(ms: number | undefined): number | undefined {
  return ms === undefined || ms > MAX_MS ? undefined : ms;
}

function limitsText(timeoutMs: number): string {
  const ms = Math.ceil(limit(timeoutMs) ?? 0);
  return `set local statement_timeout = ${ms}; ${idleText(ms)}`;
}

/** Behind a pooler the session has no limit of its own. */
function idleText(ms: number): string {
  return `set local idle_in_transaction_session_timeout = ${Math.ceil(ms)}`;
}
