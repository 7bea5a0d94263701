import { type Config, configFromProcess, listenOn, type SettingOptions } from './config.ts';
import { ACTOR_RULE, isActor } from './core/actor.ts';
import { durationMs } from './core/duration.ts';
import { InvalidInput, InvalidSettings } from './core/errors.ts';
import { parseId } from './core/ids.ts';
import { DEFAULT_TENANT, type JobRow, LOCAL_ACTOR } from './core/job.ts';
import { type Logger, silentLogger } from './core/log.ts';
import { validateWith } from './core/standard-schema.ts';
import { type AnyTask, definitionDigest, type InputOf, type SubmitArgs } from './core/task.ts';
import { jobById, jobsByIds } from './db/reads/job-row.ts';
import type { Executor, UserDb } from './db/types.ts';
import { type SubmitJobOptions, submitRequest } from './engine/submit-options.ts';
import type { Caller, Submitted } from './engine/types.ts';
import { type Foundation, openFoundation, type Setup } from './foundation.ts';
import { type JobSnapshot, snapshotOf } from './job-snapshot.ts';
import { makeMaintenance, makeWorker, type RunningServer, startServer } from './parts.ts';
import { type QueueSnapshot, queueSnapshotOf } from './queue-snapshot.ts';
import { createWaymarkApprovals, type WaymarkApprovals } from './waymark-approvals.ts';
import { createWaymarkGraphs, type WaymarkGraphs } from './waymark-graphs.ts';
import { createWaymarkSchedules, type WaymarkSchedules } from './waymark-schedules.ts';
import type { Worker } from './worker/worker.ts';

/** Settings of a back end; what is left out comes from the environment, as for the programs. */
export interface WaymarkOptions extends SettingOptions {
  /** Who this back end is, in `submittedBy` and events. Default `user:local`. */
  actor?: string;
  /** Default: says nothing. pino fits. */
  log?: Logger;
  /** Makes the application's own tables; runs once, under the lock of the migrations. */
  setup?: Setup;
}

/** The answer to a submit. */
export interface SubmitResult {
  /** As of the submit; of a deduplicated one: as it is now, in whatever state. */
  job: JobSnapshot;
  /** The key's job existed before. */
  deduplicated: boolean;
  /** After `{ tx }`: call it after the commit, to start the job at once; else the next poll does. */
  wake: () => void;
}

/** One item of `submitMany`. */
export interface SubmitItem {
  task: AnyTask | string;
  input?: unknown;
  options?: Omit<SubmitJobOptions, 'tx'>;
}

/** Waymark inside a back end. Every method may be called at any time until `close`. */
export interface Waymark extends WaymarkGraphs, WaymarkApprovals, WaymarkSchedules<SubmitResult> {
  /**
   * Hands in a job. A task object brings its definition and checks the input by its own schema; a name must be
   * registered by a worker or back end. With `tx`, a Drizzle or postgres.js transaction on the same Postgres, the job
   * exists if and only if that commits.
   * @throws InvalidInput, InvalidId and NotFound (of `dependsOn`), UnknownTask, IdempotencyConflict, PayloadTooLarge,
   *   Unavailable
   */
  submit<T extends AnyTask>(task: T, ...args: SubmitArgs<InputOf<T>, SubmitJobOptions>): Promise<SubmitResult>;
  submit(task: string, input?: unknown, options?: SubmitJobOptions): Promise<SubmitResult>;
  /** All or nothing, in order, at most 1000. @throws as `submit`, with `path` `inputs[i]` */
  submitMany(items: readonly SubmitItem[], options?: { tx?: unknown }): Promise<SubmitResult[]>;
  /**
   * Canceled at once, or RUNNING with a cancellation; a second call answers alike. Its unfinished children go with it,
   * unless `cascade` is false. @throws NotFound, InvalidTransition
   */
  cancel(id: string, options?: { reason?: string; expectedRun?: number; cascade?: boolean }): Promise<JobSnapshot>;
  /** A finished job opens its next run, a waiting one becomes due now. @throws NotFound, InvalidTransition, InvalidInput */
  retry(
    id: string,
    options?: { expectedRun?: number; fromStart?: boolean; fromCheckpoint?: string; reason?: string },
  ): Promise<JobSnapshot>;
  /** The job as it is now, or null. @throws InvalidId when `id` is none */
  job(id: string): Promise<JobSnapshot | null>;
  /** Keeps the jobs of a queue in line; what runs goes on. A second call answers alike. @throws NotFound, InvalidInput */
  pauseQueue(name: string, options?: { reason?: string }): Promise<QueueSnapshot>;
  /** Workers take its jobs again, at once. A second call answers alike. @throws NotFound */
  resumeQueue(name: string): Promise<QueueSnapshot>;
  /**
   * Sets limits over all workers; null lifts one, one that is left out stays. `per`: `"1m"`, or milliseconds.
   * @throws NotFound, InvalidInput, TypeError when `per` is no duration
   */
  updateQueue(
    name: string,
    limits: { maxRunning?: number | null; rateLimit?: { max: number; per: string | number } | null },
  ): Promise<QueueSnapshot>;
  /** Drizzle on Waymark's database, for the application's own tables. */
  readonly db: UserDb;
  /**
   * A worker in this process, with maintenance: `await worker.start()` … `await worker.stop()`. `close` stops it too.
   * @throws TypeError for a wrong concurrency, or two tasks of one name
   */
  worker(options: { tasks: readonly AnyTask[]; queues?: readonly string[]; concurrency?: number }): Worker;
  /** API in this process, with maintenance. `port` 0 takes a free one. `close` stops it too. @throws InvalidSettings */
  serve(options?: { host?: string; port?: number; tasks?: readonly AnyTask[] }): Promise<RunningServer>;
  /** Stops workers and servers in good order, then gives everything back. A second call does nothing. */
  close(): Promise<void>;
}

/**
 * Opens Waymark in this process: connects (or opens the embedded database, which belongs to one process), migrates, runs
 * `setup`.
 * @throws InvalidSettings, DataDirInUse, IncompatibleDatabase, Unavailable
 */
export async function createWaymark(options: WaymarkOptions = {}): Promise<Waymark> {
  const { actor = LOCAL_ACTOR, log = silentLogger, setup, ...settings } = options;
  if (!isActor(actor)) throw new InvalidSettings([`actor=${JSON.stringify(actor)} ${ACTOR_RULE}`]);
  const config = configFromProcess(settings);
  for (const warning of config.warnings) log.warn({}, warning);
  const foundation = await openFoundation(config, { log, setup });
  return waymarkOn(foundation, config, { tenant: DEFAULT_TENANT, actor });
}

function waymarkOn(foundation: Foundation, config: Config, caller: Caller): Waymark {
  const { database, engine } = foundation;
  const maintenance = makeMaintenance(foundation);
  const parts = new Set<{ stop(): Promise<void> }>([maintenance]);
  const registered = new Set<string>();
  let closing: Promise<void> | undefined;

  async function submit(task: AnyTask | string, input?: unknown, { tx, ...options }: SubmitJobOptions = {}) {
    const definition = typeof task === 'string' ? {} : { definition: task.definition, inputSchema: task.inputSchema };
    const executor = tx === undefined ? undefined : database.adopt(tx);
    if (typeof task !== 'string' && !executor) await register([task], database.submit);
    const submitted = await engine.jobs.submit(caller, submitRequest(task, input, options), {
      ...definition,
      ...(executor ? { tx: executor } : {}),
    });
    return resultOf(submitted, executor);
  }

  async function resultOf({ job, jobId, deduplicated, wake }: Submitted, executor: Executor = database.submit) {
    const row = job ?? (await jobById(executor, caller.tenant, jobId));
    if (!row) throw new Error(`job ${jobId} was removed in the moment it was submitted`);
    return { job: snapshotOf(row), deduplicated, wake };
  }

  async function submitMany(items: readonly SubmitItem[], { tx }: { tx?: unknown } = {}): Promise<SubmitResult[]> {
    const executor = tx === undefined ? undefined : database.adopt(tx);
    await checkInputs(items);
    await register(
      items.map((item) => item.task).filter((task) => typeof task !== 'string'),
      executor ?? database.submit,
    );
    const requests = items.map(({ task, input, options = {} }) => submitRequest(task, input, options));
    const submitted = await engine.jobs.submitMany(caller, requests, executor ? { tx: executor } : {});
    const known = submitted.filter(({ job }) => job === null).map(({ jobId }) => jobId);
    const rows = known.length === 0 ? [] : await jobsByIds(executor ?? database.submit, caller.tenant, known);
    const byId = new Map(rows.map((row) => [row.id, row]));
    return submitted.map(({ jobId, job, deduplicated, wake }) => ({
      job: snapshotOf(job ?? (byId.get(jobId) as JobRow)),
      deduplicated,
      wake,
    }));
  }

  /** Makes tasks known to every API; once per definition. In a transaction that may roll back it is not remembered. */
  async function register(tasks: readonly AnyTask[], executor: Executor): Promise<void> {
    const news = new Map(tasks.map((task) => [definitionDigest(task.definition), task.definition]));
    for (const digest of registered) news.delete(digest);
    if (news.size === 0) return;
    await engine.execution.registerTasks([...news.values()], executor);
    if (executor === database.submit) for (const digest of news.keys()) registered.add(digest);
  }

  return {
    submit,
    submitMany,
    cancel: async (id, o) => snapshotOf(await engine.jobs.cancel(caller, parseId('Job', id), o)),
    retry: async (id, o) => snapshotOf(await engine.jobs.retry(caller, parseId('Job', id), o)),
    async job(id) {
      const row = await jobById(database.submit, caller.tenant, parseId('Job', id));
      return row && snapshotOf(row);
    },
    pauseQueue: async (name, o) => queueSnapshotOf(await engine.queues.pause(caller, name, o)),
    resumeQueue: async (name) => queueSnapshotOf(await engine.queues.resume(caller, name)),
    async updateQueue(name, { rateLimit, ...limits }) {
      const rate = rateLimit && { max: rateLimit.max, perMs: durationMs(rateLimit.per, 'rateLimit.per') };
      return queueSnapshotOf(await engine.queues.update(caller, name, { ...limits, rateLimit: rate }));
    },
    ...createWaymarkGraphs(engine.graphs, database, caller, { register }),
    ...createWaymarkApprovals(engine.approvals, database, caller),
    ...createWaymarkSchedules(engine.schedules, caller, {
      register: (task) => register([task], database.submit),
      resultOf,
    }),
    db: database.work.user,
    worker({ tasks, queues, concurrency = config.concurrency }) {
      const worker = makeWorker(foundation, { tasks, concurrency, ...(queues ? { queues } : {}) });
      parts.add(worker);
      maintenance.start();
      return worker;
    },
    async serve({ tasks = [], ...where } = {}) {
      const address = listenOn(config, where);
      await register(tasks, database.submit);
      const server = await startServer(foundation, { host: address.host, port: address.port });
      parts.add(server);
      maintenance.start();
      return server;
    },
    close() {
      closing ??= Promise.all([...parts].map((part) => part.stop())).then(() => foundation.close());
      return closing;
    },
  };
}

/** By the tasks' own schemas, all items, before anything is written. @throws InvalidInput */
async function checkInputs(items: readonly SubmitItem[]): Promise<void> {
  for (const [i, { task, input }] of items.entries()) {
    if (typeof task === 'string' || !task.inputSchema) continue;
    const result = await validateWith(task.inputSchema, input, `inputs[${i}].input`);
    if (!result.ok) throw new InvalidInput(result.issues, { path: `inputs[${i}]` });
  }
}
