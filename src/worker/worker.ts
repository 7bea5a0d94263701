import { newUuid } from '../core/ids.ts';
import type { Logger } from '../core/log.ts';
import type { AnyTask } from '../core/task.ts';
import type { UserDb } from '../db/types.ts';
import type { ClaimedJob, ExecutionEngine } from '../engine/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import { Attempt } from './attempt.ts';
import { Boots } from './boots.ts';
import { Executor } from './executor.ts';
import { LogBuffer } from './log-buffer.ts';
import { Producer } from './producer.ts';
import { ProgressFlusher } from './progress-flusher.ts';
import { Roster } from './roster.ts';
import { Settler } from './settler.ts';
import { moduleOf } from './tasks-module.ts';
import { ThreadPool } from './thread-pool.ts';
import { Deadline, settledWithin } from './timing.ts';
import { Trouble } from './trouble.ts';

/** What a worker is made of. */
export interface WorkerParts {
  execution: ExecutionEngine;
  channel: LiveChannel;
  /** Becomes `ctx.db`. */
  db: UserDb;
  tasks: readonly AnyTask[];
  /** Queues it serves; left out or null: all. */
  queues?: readonly string[] | null;
  /** Handlers that run at once. */
  concurrency: number;
  log: Logger;
  options: WorkerOptions;
  /**
   * Postgres, for threads that have connections of their own. Left out or null (embedded): beats come from the thread of
   * the handlers, and stop while one of them blocks it.
   */
  databaseUrl?: string | null;
  /** Where people find this Waymark, for links that handlers send. Default `http://127.0.0.1:4000`. */
  publicUrl?: string;
  /** Id of the first boot; default a new one. */
  workerId?: string;
}

/** In milliseconds and bytes. */
export interface WorkerOptions {
  heartbeatMs: number;
  leaseMs: number;
  pollMs: number;
  /** Time for a handler after an abort, and for all of them at `stop`. */
  graceMs: number;
  /** A handler that blocks the event loop for longer loses the worker its lease. */
  maxBlockMs: number;
  maxBytes: { result: number; checkpoint: number };
}

/** Runs jobs. Every method may be called at any time and any number of times. */
export interface Worker {
  /** Id of the boot under way, or of the next one. A boot's id is never used again. */
  readonly id: string;
  /**
   * Registers and begins to claim. Resolves when the store knows the worker (it waits for a store that is away), or when
   * `stop` came first. While it runs a second call does nothing; after a stop it begins anew, under a new id.
   * @throws what the store says that is no absence, such as IncompatibleDatabase
   */
  start(): Promise<void>;
  /**
   * Claims nothing more at once, lets handlers end within the grace time, then fires `shutdown` and hands the rest back.
   * Never rejects. A second call waits for the same end, and can bring it forward with a shorter `graceMs`.
   */
  stop(options?: { graceMs?: number }): Promise<void>;
  /** Slots in use, those of handlers that were given up and still run included. */
  busy(): number;
  /** Told of each error that a loop met and survived. Returns a function that ends it. */
  onError(listener: (error: unknown) => void): () => void;
}

/** After the grace time: how long the last ends, and then the last log lines and the farewell, may take. */
const LAST_ENDS_MS = 2_000;
const FAREWELL_MS = 1_000;

/**
 * Makes a worker; nothing happens before `start`.
 * @throws TypeError for a wrong concurrency, two tasks of one name, or an isolated task whose module is not known
 */
export function createWorker(parts: WorkerParts): Worker {
  if (!Number.isInteger(parts.concurrency) || parts.concurrency < 1) {
    throw new TypeError(`concurrency must be an integer from 1, not ${parts.concurrency}`);
  }
  const tasks = new Map<string, AnyTask>();
  for (const task of parts.tasks) {
    if (tasks.has(task.name)) throw new TypeError(`two tasks have the name ${JSON.stringify(task.name)}`);
    if (task.isolation === 'thread' && moduleOf(task) === undefined) {
      throw new TypeError(
        `task ${task.name}: isolation "thread" needs the module that exports the task; ` +
          'load it as a tasks file, or define the task with `module: import.meta.url`',
      );
    }
    tasks.set(task.name, task);
  }
  return new Runtime(parts, tasks);
}

class Runtime implements Worker {
  readonly #parts: WorkerParts;
  readonly #tasks: ReadonlyMap<string, AnyTask>;
  readonly #roster = new Roster();
  readonly #flusher: ProgressFlusher;
  readonly #logs: LogBuffer;
  readonly #threads: ThreadPool;
  readonly #executor: Executor;
  readonly #producer: Producer;
  readonly #boots: Boots;
  readonly #listeners = new Set<(error: unknown) => void>();
  readonly #handingBack = new Set<Promise<unknown>>();
  #unsubscribe: () => void = () => {};
  /** What the last call of `start` or `stop` asked for. */
  #wanted = false;
  #starting: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;
  /** The end of the grace time; there is one from the call of `stop` on. */
  #end: Deadline | null = null;

  constructor(parts: WorkerParts, tasks: ReadonlyMap<string, AnyTask>) {
    const {
      execution,
      channel,
      db,
      log,
      concurrency,
      options,
      queues = null,
      publicUrl = 'http://127.0.0.1:4000',
    } = parts;
    const { heartbeatMs, leaseMs, pollMs, graceMs, maxBlockMs, maxBytes } = options;
    const roster = this.#roster;
    const onError = (error: unknown): void => {
      for (const listener of this.#listeners) listener(error);
    };
    const trouble = (doing: string): Trouble => new Trouble({ log, doing, onError });
    this.#parts = parts;
    this.#tasks = tasks;
    this.#flusher = new ProgressFlusher(execution, log, () => this.#boots.nudge());
    this.#logs = new LogBuffer(execution, log);
    const databaseUrl = parts.databaseUrl ?? null;
    this.#threads = new ThreadPool(
      { databaseUrl, maxBytes, leaseMs, publicUrl, gathering: execution.gathering },
      { execution, channel, log },
    );
    this.#executor = new Executor({
      execution,
      db,
      log,
      roster,
      graceMs,
      maxBytes,
      flusher: this.#flusher,
      logs: this.#logs,
      publicUrl,
      threads: this.#threads,
      settler: new Settler(execution, log, trouble('record the end of an attempt')),
      trouble: trouble('save a checkpoint'),
    });
    this.#producer = new Producer({
      execution,
      roster,
      concurrency,
      queues,
      pollMs,
      onError,
      log,
      tasks: [...tasks.keys()],
      workerId: () => this.#boots.claimant,
      start: (job, workerId) => this.#take(job, workerId),
    });
    this.#boots = new Boots({
      execution,
      channel,
      log,
      roster,
      queues,
      heartbeatMs,
      leaseMs,
      maxBlockMs,
      databaseUrl,
      onError,
      claims: this.#producer.claims,
      firstId: parts.workerId ?? newUuid(),
      tasks: [...tasks.values()].map((task) => task.definition),
      slots: concurrency,
      draining: () => this.#end !== null,
      onLease: () => this.#producer.look(),
    });
  }

  get id(): string {
    return this.#boots.id;
  }

  busy(): number {
    return this.#roster.held;
  }

  onError(listener: (error: unknown) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async start(): Promise<void> {
    this.#wanted = true;
    await this.#stopping;
    if (!this.#wanted) return;
    this.#starting ??= this.#begin();
    return this.#starting;
  }

  async stop({ graceMs = this.#parts.options.graceMs }: { graceMs?: number } = {}): Promise<void> {
    this.#wanted = false;
    if (this.#starting === null) return;
    this.#end ??= new Deadline();
    this.#end.within(graceMs);
    this.#stopping ??= this.#finish(this.#end, this.#starting);
    return this.#stopping;
  }

  async #begin(): Promise<void> {
    const { channel } = this.#parts;
    try {
      await this.#boots.open();
    } catch (error) {
      this.#starting = null;
      await this.#boots.close(0);
      throw error;
    }
    if (this.#end !== null) return;
    const ready = channel.onReady((hints) => this.#producer.hint(hints));
    const offState = channel.onState((state) => {
      if (state === 'live') this.#producer.look();
    });
    this.#unsubscribe = () => {
      ready.unsubscribe();
      offState();
    };
    if (this.#tasks.size > 0) this.#producer.start();
  }

  #take(job: ClaimedJob, workerId: string): void {
    // Its lease is over: the store gives the job to somebody else, or still calls it ours and the beat finds it.
    if (!this.#boots.owns(workerId)) return;
    const task = this.#tasks.get(job.task);
    if (!task || this.#end !== null) {
      this.#handBack(job);
      return;
    }
    const attempt = new Attempt(job, task, workerId, this.#boots.cover);
    this.#roster.enter(attempt);
    void this.#executor.run(attempt).then(() => this.#producer.slotFreed(job.queue));
  }

  #handBack({ id, attempt }: ClaimedJob): void {
    const settle = settledWithin(
      this.#parts.execution.settle({ jobId: id, attempt, outcome: 'RELEASED' }),
      LAST_ENDS_MS,
    );
    this.#handingBack.add(settle);
    void settle.then(() => this.#handingBack.delete(settle));
  }

  async #finish(end: Deadline, starting: Promise<void>): Promise<void> {
    const claimed = this.#producer.stop();
    this.#boots.cancel();
    this.#boots.nudge();
    await starting.catch(() => {});
    await Promise.race([this.#roster.quiet(), end.reached]);
    end.cancel();
    for (const attempt of [...this.#roster.spokenFor()]) {
      attempt.abort('shutdown', 'the worker is shutting down');
      attempt.giveUp();
    }
    await settledWithin(
      claimed.then(() => Promise.all([this.#roster.quiet(), ...this.#handingBack])),
      LAST_ENDS_MS,
    );
    // Ends that the store has not taken by now are not offered any longer: the lease runs out, and others see to them.
    for (const attempt of [...this.#roster.spokenFor()]) attempt.abort('lease-lost');
    this.#unsubscribe();
    await this.#threads.close();
    await Promise.all([settledWithin(this.#flusher.stop(), FAREWELL_MS), this.#logs.stop(FAREWELL_MS)]);
    await this.#boots.close(FAREWELL_MS);
    this.#starting = null;
    this.#stopping = null;
    this.#end = null;
  }
}
