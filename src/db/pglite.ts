import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { Unavailable } from '../core/errors.ts';
import { Gate } from './gate.ts';
import type { ThreadError, ThreadReply, ThreadRequest, ThreadResult, ThreadStart } from './pglite-messages.ts';
import type { RawOptions, RawPool, RawResult, RawTx } from './raw.ts';
import { OWN_CODE, startThread } from './thread.ts';

/** A transaction that is still open after this is not waited for; it was never committed. */
const CLOSE_TIMEOUT_MS = 2_000;

const ONCE: RawOptions = { as: 'objects', prepare: false };

type Pending = { resolve: (value: never) => void; reject: (error: unknown) => void };
type RequestBody = ThreadRequest extends infer R ? (R extends unknown ? Omit<R, 'id'> : never) : never;

/** The embedded database, in a thread. It has one connection: a transaction owns it until its end, all else waits. */
export class EmbeddedPool implements RawPool {
  readonly #thread: Worker;
  readonly #pending = new Map<number, Pending>();
  readonly #gate = new Gate();
  #lastId = 0;
  #dead: { message: string; cause?: unknown } | undefined;
  #closing: Promise<void> | undefined;

  constructor(start: ThreadStart) {
    this.#thread = startThread('pglite-thread', import.meta.url, { workerData: start, ...OWN_CODE });
    this.#thread.on('message', (reply: ThreadReply) => this.#settle(reply));
    this.#thread.on('error', (error) => this.#fail(error));
    this.#thread.on('exit', () => this.#die('the embedded database is closed'));
  }

  async run(text: string, params: readonly unknown[], options: RawOptions): Promise<RawResult> {
    const leave = await this.#gate.enter(false);
    return this.#run(text, params, options).finally(leave);
  }

  async begin<T>(fn: (tx: RawTx) => Promise<T>): Promise<T> {
    const leave = await this.#gate.enter(true);
    try {
      await this.#run('begin');
      return await this.#inTransaction(fn);
    } finally {
      leave();
    }
  }

  /** A copy of the whole database, to be given to another as its `template`. */
  async dump(): Promise<Blob> {
    const leave = await this.#gate.enter(true);
    return this.#call<Blob>({ op: 'dump' }).finally(leave);
  }

  /** Waits for what is under way. A second call gives the first one's promise. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #inTransaction<T>(fn: (tx: RawTx) => Promise<T>): Promise<T> {
    const tx = new EmbeddedTx((text, params, options) => this.#run(text, params, options));
    let value: T;
    try {
      value = await fn(tx);
    } catch (error) {
      // When this fails, the thread is gone and the transaction with it.
      await this.#run('rollback').catch(() => {});
      throw error;
    }
    const { command } = await this.#run('commit');
    // The answer to COMMIT after a failed statement: `fn` hid the failure, but nothing was kept.
    if (command === 'ROLLBACK') throw tx.firstError ?? new Error('the transaction had failed and was rolled back');
    return value;
  }

  #run(text: string, params: readonly unknown[] = [], options: RawOptions = ONCE): Promise<ThreadResult> {
    return this.#call<ThreadResult>({ op: 'run', text, params, ...options });
  }

  #call<R>(body: RequestBody): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      if (this.#dead !== undefined) return reject(unavailable(this.#dead));
      const id = ++this.#lastId;
      // Throws, and so rejects, for a parameter that cannot be copied to the thread, such as a function.
      this.#thread.postMessage({ ...body, id });
      this.#pending.set(id, { resolve: resolve as Pending['resolve'], reject });
    });
  }

  #settle(reply: ThreadReply): void {
    if ('fatal' in reply) {
      this.#fail(revive(reply.fatal));
      return;
    }
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if ('error' in reply) pending?.reject(revive(reply.error));
    else pending?.resolve(reply.ok as never);
  }

  #fail(error: unknown): void {
    this.#die(`the embedded database failed: ${error instanceof Error ? error.message : String(error)}`, error);
  }

  #die(message: string, cause?: unknown): void {
    this.#dead ??= { message, cause };
    for (const { reject } of this.#pending.values()) reject(unavailable(this.#dead));
    this.#pending.clear();
  }

  async #close(): Promise<void> {
    const entered = this.#gate.enter(true);
    await Promise.race([entered, sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
    await this.#call({ op: 'close' }).catch(() => {});
    await this.#thread.terminate();
    this.#die('the embedded database is closed');
    // Whoever waited behind it, or comes later, is told so.
    void entered.then((leave) => leave());
  }
}

type Run = (text: string, params?: readonly unknown[], options?: RawOptions) => Promise<RawResult>;

class EmbeddedTx implements RawTx {
  readonly #run: Run;
  #savepoints = 0;
  /** Of a statement that no savepoint took back: the transaction can only be rolled back. */
  firstError: unknown;

  constructor(run: Run) {
    this.#run = run;
  }

  async run(text: string, params: readonly unknown[], options: RawOptions): Promise<RawResult> {
    try {
      return await this.#run(text, params, options);
    } catch (error) {
      this.firstError ??= error;
      throw error;
    }
  }

  async savepoint<T>(fn: (inner: RawTx) => Promise<T>): Promise<T> {
    const name = `waymark_${++this.#savepoints}`;
    await this.#run(`savepoint ${name}`);
    const before = this.firstError;
    try {
      const value = await fn(this);
      if (this.firstError !== before) throw this.firstError;
      await this.#run(`release savepoint ${name}`);
      return value;
    } catch (error) {
      await this.#run(`rollback to savepoint ${name}`);
      this.firstError = before;
      throw error;
    }
  }
}

function unavailable({ message, cause }: { message: string; cause?: unknown }): Unavailable {
  return new Unavailable(message, cause === undefined ? {} : { cause });
}

function revive({ name, message, stack, ...fields }: ThreadError): Error {
  const error = Object.assign(new Error(message), fields);
  error.name = name;
  if (stack !== undefined) error.stack = stack;
  return error;
}
