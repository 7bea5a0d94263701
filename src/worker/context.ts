import type { ArtifactData } from '../artifacts/gather.ts';
import type { ArtifactRecord } from '../core/artifact.ts';
import type { Jsonify, JsonValue } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import type { ProgressReport } from '../core/progress.ts';
import type { StandardSchemaV1 } from '../core/standard-schema.ts';
import type { AnyTask, InputOf, SubmitArgs, Task } from '../core/task.ts';
import type { UserDb, UserTx } from '../db/types.ts';
import type { SubmitJobOptions } from '../engine/submit-options.ts';
import type { ApprovalOptions, Approved, ChildOutcomes, ChildResults, ChildSpecs, Rejected } from './wait-types.ts';

export interface StepOptions {
  /** Aborts the step's signal and rejects with StepTimeoutError (retryable). */
  timeout?: string | number;
  /** Repeats inside the attempt, holding its slot, without using the job's budget. `maxAttempts` counts the first. */
  retry?: { maxAttempts?: number; delay?: string | number; factor?: number; max?: string | number };
}

export interface StepInfo {
  /** Fires with the attempt's signal, or at the step's timeout. */
  signal: AbortSignal;
  /** As `ctx.idempotencyKey(key)`. */
  idempotencyKey: string;
  /** 1 for the first try of this step in this attempt. */
  attempt: number;
}

export interface BatchOptions<V, C> {
  /** The first cursor. */
  start: C;
  /** Everything behind `cursor`, in an order that stays the same. Each item carries the cursor that stands behind it. */
  source: (
    cursor: C,
    s: { signal: AbortSignal },
  ) => Iterable<{ value: V; cursor: C }> | AsyncIterable<{ value: V; cursor: C }>;
  /** Items per batch. */
  size: number;
  /** Number of all items, where known: progress then shows a fraction. */
  total?: number;
  /** Default true: the batch's writes through `tx` commit with its cursor and counts. */
  transaction?: boolean;
}

export interface BatchInfo<C, T> {
  /** 0, 1, 2… over all attempts. */
  index: number;
  /** The cursor behind the last item of this batch. */
  cursor: C;
  signal: AbortSignal;
  /** The same when this very batch is repeated. */
  idempotencyKey: string;
  tx: T;
}

export interface BatchResult {
  processed: number;
  succeeded: number;
  failed: number;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing
export type BatchReturn<V> = void | { failed: { item: V; error: unknown }[] };

/**
 * What a handler gets. A checkpoint key is used by one call per attempt; a second use throws DuplicateKeyError.
 * Every awaited write is durable when it returns, and is refused once the attempt no longer owns the job.
 * Hand it on as it is: a copy by spread (`{ ...ctx }`) has its functions, but not `job`, `signal`, `db` and `log`.
 */
export interface HandlerContext<Stage extends string = string> {
  readonly job: {
    /** Public form: `job_…`. */
    readonly id: string;
    readonly task: string;
    readonly run: number;
    readonly attempt: number;
    readonly maxAttempts: number;
    readonly tenant: string;
    readonly tags: readonly string[];
    readonly submittedBy: string;
    readonly createdAt: Date;
  };
  /** Fires when the attempt must stop; `signal.reason` is an AttemptAborted with its `kind`. */
  readonly signal: AbortSignal;
  /** Reports progress. Never waits, never throws; ignored once the attempt lost its lease. */
  progress(report: ProgressReport<Stage>): void;
  /** Runs `fn` once over all attempts and returns the JSON form of what it gave, now and later. */
  step<T>(key: string, fn: (s: StepInfo) => Promise<T> | T, options?: StepOptions): Promise<Jsonify<T>>;
  /** As `step`, but `fn`'s writes through `tx`, the checkpoint and its event commit together: exactly once. */
  transaction<T>(key: string, fn: (tx: UserTx) => Promise<T> | T): Promise<Jsonify<T>>;
  /** Works through a source in batches, each saved with its cursor and counts; totals cover all attempts. */
  batches<V, C>(
    key: string,
    options: BatchOptions<V, C> & { transaction: false },
    fn: (values: V[], batch: BatchInfo<C, undefined>) => Promise<BatchReturn<V>> | BatchReturn<V>,
  ): Promise<BatchResult>;
  batches<V, C>(
    key: string,
    options: BatchOptions<V, C> & { transaction?: true },
    fn: (values: V[], batch: BatchInfo<C, UserTx>) => Promise<BatchReturn<V>> | BatchReturn<V>,
  ): Promise<BatchResult>;
  /** Saves a value under a key; a later call with the same key in a later attempt replaces it. */
  checkpoint(key: string, data: JsonValue): Promise<void>;
  /** The value saved under a key by this or an earlier attempt, or undefined. */
  restore<T = JsonValue>(key: string): Promise<T | undefined>;
  /**
   * Stores a deliverable under a name and returns its record. `data`: a string, bytes, a Blob, or an async iterable or
   * stream of bytes, which is read once. A second call of the same name, in this or a later attempt, replaces the record.
   * @throws NonRetryableError ARTIFACT_TOO_LARGE where the limit of the store is passed, INVALID_ARTIFACT
   */
  artifact(name: string, data: ArtifactData, options?: ArtifactOptions): Promise<ArtifactRecord>;
  /**
   * Asks people, and suspends the job in WAITING_FOR_REVIEW without holding a slot. A rejection throws
   * ApprovalRejectedError unless `onReject: "return"`. Several may be open at once (`Promise.all`): the job goes on with each
   * answer.
   */
  approval<
    S extends StandardSchemaV1 | undefined = undefined,
    const X extends 'fail' | 'reject' | 'approve' = 'fail',
    const J extends 'throw' | 'return' = 'throw',
  >(
    key: string,
    options: ApprovalOptions<S, X, J>,
  ): Promise<
    | Approved<
        | (S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : JsonValue)
        | (X extends 'approve' ? null : never)
      >
    | (J extends 'return' ? Rejected : never)
  >;
  /** Suspends the job for a time, without holding a slot. `"2h"`, or milliseconds. It may be ended early by `runJobNow`. */
  sleep(key: string, delay: string | number): Promise<void>;
  /**
   * Submits children once, and suspends the job until all have ended, without holding a slot. Results come in order, in
   * their JSON form. Otherwise than by `return`, a child that did not complete throws ChildFailedError.
   */
  children<const T extends readonly AnyTask[]>(
    key: string,
    specs: ChildSpecs<T>,
    options: { onFailure: 'return' },
  ): Promise<ChildOutcomes<T>>;
  children<const T extends readonly AnyTask[]>(
    key: string,
    specs: ChildSpecs<T>,
    options?: { onFailure?: 'throw' | 'cancelSiblings' },
  ): Promise<ChildResults<T>>;
  /** Submits another job once, without waiting for it. With `tx`, inside `ctx.transaction`: with its commit. */
  submit<T extends AnyTask>(
    key: string,
    task: T,
    ...args: SubmitArgs<InputOf<T>, SubmitJobOptions>
  ): Promise<{ jobId: string }>;
  submit(key: string, task: string, input?: unknown, options?: SubmitJobOptions): Promise<{ jobId: string }>;
  /** How the jobs ended that this one depends on, in the order in which they were given. `name`: its node in the graph. */
  readonly dependencies: readonly (Outcome & { name: string | null })[];
  /** The one of a node. The task is only for the type of its result. @throws Error when the job depends on no such node */
  // biome-ignore lint/suspicious/noExplicitAny: only the result's type is of interest
  dependency<R = unknown>(name: string, task?: Task<string, any, any, R>): Outcome<Jsonify<R>>;
  /** A key to hand to an outside service: the same over all attempts and runs, until `retryJob(fromStart: true)`. */
  idempotencyKey(name: string): string;
  /** Drizzle on Waymark's database, outside a transaction. */
  readonly db: UserDb;
  readonly log: HandlerLog;
}

export interface ArtifactOptions {
  /** Such as `"text/csv"`. Default: a Blob's own; for a string `text/plain`, else `application/octet-stream`. */
  mediaType?: string;
}

/** Log lines tied to the job and the attempt. Never waits, never throws. */
export interface HandlerLog {
  debug(message: string, data?: JsonValue): void;
  info(message: string, data?: JsonValue): void;
  warn(message: string, data?: JsonValue): void;
  error(message: string, data?: JsonValue): void;
}
