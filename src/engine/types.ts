import type { GatherOptions } from '../artifacts/gather.ts';
import type { ShownApproval } from '../core/approval.ts';
import type { ArtifactRow } from '../core/artifact.ts';
import type { Backoff } from '../core/backoff.ts';
import type { JobErrorData } from '../core/event.ts';
import type { CheckpointKind, CheckpointRow, DependencyPolicy, ErrorSample, JobRow } from '../core/job.ts';
import type { OutcomeRow } from '../core/outcome.ts';
import type { ProgressState } from '../core/progress.ts';
import type { StandardSchemaV1 } from '../core/standard-schema.ts';
import type { AttemptOutcome, JobState } from '../core/state.ts';
import type { TaskDefinition } from '../core/task.ts';
import type { ClaimRequest } from '../db/transitions/claim.ts';
import type { JobLinks } from '../db/transitions/submit.ts';
import type { Executor, Tx } from '../db/types.ts';
import type { ArtifactWrite } from './artifacts.ts';

/** Who asks, and for whom. */
export interface Caller {
  tenant: string;
  /** `user:ada`, `key:ci`, `system:…`. */
  actor: string;
  /** Groups that the actor is in, as approvals name them without `group:`. Default none. */
  groups?: readonly string[];
}

/** What a client may say about a job at submit, in stored units. Checked by the engine. */
export interface SubmitRequest {
  /** Name of the task; must be registered, or be given as `definition`. */
  task: string;
  /** Left out: the handler gets `undefined`. */
  input?: unknown;
  title?: string | null;
  idempotencyKey?: string | null;
  keyScope?: 'RETENTION' | 'UNTIL_FINISHED' | null;
  queue?: string | null;
  priority?: number | null;
  tags?: readonly string[] | null;
  /** RFC 3339; exclusive with `delayMs`. In the past means now. */
  runAt?: string | null;
  delayMs?: number | null;
  maxAttempts?: number | null;
  timeoutMs?: number | null;
  backoff?: Backoff | null;
  concurrencyKey?: string | null;
  /** Jobs that go before it, by stored id. It is DEFERRED until they are done. */
  dependsOn?: readonly { jobId: string; policy?: DependencyPolicy | null }[] | null;
}

export interface SubmitOptions {
  /** Definition known in code: no look-up of the registered task. */
  definition?: TaskDefinition;
  /** Checks the input with the task's own schema in place of its JSON Schema. */
  inputSchema?: StandardSchemaV1 | undefined;
  /** The caller's own open transaction: the job exists if and only if it commits. */
  tx?: Executor;
  /** Prefix of error paths: `inputs[17]`. Default none. */
  path?: string;
  /** What it belongs to. Default nothing. */
  links?: Partial<Omit<JobLinks, 'dependsOn'>>;
}

export interface Submitted {
  jobId: string;
  deduplicated: boolean;
  /** The job as of the submit; null when it was there before: then only a read tells how it is. */
  job: JobRow | null;
  /** With `tx`: call it after the commit, to start the job at once; otherwise the next poll does. */
  wake: () => void;
}

/** Verbs of clients. Each returns the job as it is after the commit. */
export interface JobsEngine {
  /** @throws InvalidInput, UnknownTask, IdempotencyConflict, PayloadTooLarge, NotFound (of `dependsOn`), Unavailable */
  submit(caller: Caller, request: SubmitRequest, options?: SubmitOptions): Promise<Submitted>;
  /** All or nothing, in order; at most 1000. Errors carry `path` `inputs[i]`. */
  submitMany(
    caller: Caller,
    requests: readonly SubmitRequest[],
    options?: Pick<SubmitOptions, 'tx'>,
  ): Promise<Submitted[]>;
  /**
   * Cancels a waiting job at once; of a running one it requests it. A second call on a canceled (or being canceled) job
   * answers alike. `cascade` (default true): its unfinished children are canceled with it. `id` is the stored form.
   * @throws NotFound, InvalidTransition
   */
  cancel(
    caller: Caller,
    id: string,
    options?: { reason?: string | null; expectedRun?: number | null; cascade?: boolean | null },
  ): Promise<JobRow>;
  /** A finished job opens its next run, a RETRYING or SCHEDULED one becomes due now. @throws NotFound, InvalidTransition, InvalidInput */
  retry(
    caller: Caller,
    id: string,
    options?: {
      expectedRun?: number | null;
      fromStart?: boolean | null;
      fromCheckpoint?: string | null;
      reason?: string | null;
    },
  ): Promise<JobRow>;
  /** A SCHEDULED or RETRYING job becomes due now. @throws NotFound, InvalidTransition */
  runNow(caller: Caller, id: string): Promise<JobRow>;
}

/** A job handed to a worker. */
export interface ClaimedJob {
  id: string;
  tenant: string;
  task: string;
  queue: string;
  tags: string[];
  submittedBy: string;
  createdAt: string;
  run: number;
  epoch: number;
  attempt: number;
  /** Failures of this run before this attempt. */
  failures: number;
  maxAttempts: number;
  timeoutMs: number | null;
  stallTimeoutMs: number | null;
  backoff: Backoff;
  hasInput: boolean;
  input: unknown;
  resumedFrom: string | null;
  /** When it was claimed, by the database's clock. */
  at: string;
  /** It has jobs that went before it, or children. */
  depends: boolean;
}

/** What a claim of queues with limits gave, and when there may be more. */
export interface LimitedClaim {
  jobs: ClaimedJob[];
  /** Queues in which jobs wait and as many run as may: when one of these ends there is room for the next. */
  full: string[];
  /** After this time more may start though nothing tells of it; null: nothing is known. In milliseconds. */
  lookAgainMs: number | null;
}

/** What a suspended attempt waits for; several of one kind at once. `detail` is one readable sentence. */
export type SuspendWait = { detail: string } & (
  | { kind: 'REVIEW'; approvalIds: readonly string[] }
  /** New ones by their length, those that an earlier attempt began by their end (RFC 3339). */
  | { kind: 'SLEEP'; sleeps: readonly { key: string; delayMs: number | null; until: string | null }[] }
  | { kind: 'CHILDREN' }
);

/** An approval that a running attempt opens. */
export interface ApprovalOpening extends ShownApproval {
  jobId: string;
  attempt: number;
  key: string;
  /** Null: it does not expire. */
  expiresInMs: number | null;
}

/** Jobs that a running attempt submits together with the checkpoint that keeps it from submitting them again. */
export interface JobsFromHandler {
  jobId: string;
  attempt: number;
  epoch: number;
  key: string;
  /** `CHILDREN`: children that the job may wait for, `CANCEL_SIBLINGS`: which end together. `null`: one job on its own. */
  children: 'CONTINUE' | 'CANCEL_SIBLINGS' | null;
  jobs: readonly { request: SubmitRequest; definition: TaskDefinition | null }[];
}

/** How an attempt ended, as its worker says. */
export interface AttemptEnd {
  jobId: string;
  attempt: number;
  outcome: AttemptOutcome;
  /** SUSPENDED: what for. */
  wait?: SuspendWait | null;
  /** SUCCEEDED: JSON text, or null for "no result". */
  result?: string | null;
  resultDigest?: string | null;
  /** Budget outcomes. `stack` may be long: it is stored apart when large. */
  error?: JobErrorData | null;
  /** RETRYING and POSTPONED: wait before the next attempt. */
  delayMs?: number | null;
  /** POSTPONED: said by RetryLater. */
  reason?: string | null;
  /** CANCELED: the handler was given up past the grace time. */
  forced?: boolean;
  /** The last unsent gauge. */
  progress?: ProgressState | null;
}

/** What became of an AttemptEnd. `lost`: the attempt no longer owned the job and nothing was written. */
export type SettleResult = { status: 'settled' | 'repeated'; state: JobState } | { status: 'lost' };

/** What a worker says of itself with a beat. */
export interface BeatStatus {
  leaseMs: number;
  /** Slots in use. */
  busy: number;
  draining: boolean;
  /** Its event loop was blocked since the last beat. */
  blocked: boolean;
  /** Blocked for longer than is allowed: this beat is the last one and gives the lease up. Default false. */
  hung?: boolean;
}

export interface BeatAnswer {
  /** False: the worker is LOST (or unknown) and must go on under a new id. */
  alive: boolean;
  /** RUNNING jobs that the database says are this worker's. */
  jobs: { jobId: string; attempt: number; cancel: { by: string | null; reason: string | null } | null }[];
}

export interface CheckpointWrite {
  jobId: string;
  attempt: number;
  epoch: number;
  key: string;
  kind: CheckpointKind;
  /** JSON text. */
  data: string;
  processed?: number | null;
  succeeded?: number | null;
  failed?: number | null;
  errorSamples?: ErrorSample[] | null;
  progress?: ProgressState | null;
}

export interface LogWrite {
  /** Made by the worker (`newUuid`), so that a line that is sent again is stored once. Orders the lines of a job. */
  id: string;
  jobId: string;
  attempt: number;
  at: string;
  level: 'debug' | 'info' | 'warn' | 'error';
  message: string;
  /** JSON text or null. */
  data: string | null;
}

/** How artifacts come from handlers to their store. */
export interface ArtifactVerbs {
  /** How a content is gathered before it is stored: its name is its sha256, and known only in the end. */
  readonly gathering: GatherOptions;
  /**
   * Keeps a content and writes its record and event in the place of the job's former one of that name. The same content
   * under the same name is a repetition: no event, and the record is as it was. @throws LeaseLost, Unavailable
   */
  storeArtifact(write: ArtifactWrite): Promise<ArtifactRow>;
}

/** Verbs of workers. Whatever is said about an attempt is fenced by its number. */
export interface ExecutionEngine extends ArtifactVerbs {
  /** Makes tasks and queues known and opens the worker's lease. */
  registerWorker(worker: {
    id: string;
    host: string;
    pid: number;
    /** Queues it serves; null: all. */
    queues: readonly string[] | null;
    tasks: readonly TaskDefinition[];
    slots: number;
    leaseMs: number;
  }): Promise<void>;
  /**
   * Makes tasks known, without a worker; with `tx` if and only if that commits. A second call with the same definitions
   * changes nothing.
   */
  registerTasks(tasks: readonly TaskDefinition[], tx?: Executor): Promise<void>;
  /** Renews the lease and reads what the worker owns. Locks no job row. */
  beat(workerId: string, status: BeatStatus): Promise<BeatAnswer>;
  /** Takes up to `limit` jobs of queues without a limit. Empty when the worker's lease is over. */
  claim(workerId: string, request: ClaimRequest): Promise<ClaimedJob[]>;
  /**
   * Takes up to `limit` jobs of queues with a limit, and no more than their limits leave over all workers. Asks the store
   * nothing while there is no such queue, but for one look a second.
   */
  claimLimited(workerId: string, request: ClaimRequest): Promise<LimitedClaim>;
  /** Ends attempts; calls within a few milliseconds share a transaction. Resolves after the commit. */
  settle(end: AttemptEnd): Promise<SettleResult>;
  /** Writes the latest gauges of many jobs in one statement. Resolves with the ids that were written. */
  flushProgress(updates: readonly { jobId: string; attempt: number; progress: ProgressState }[]): Promise<string[]>;
  /** What the job has saved in this epoch, by key. */
  checkpoints(jobId: string, epoch: number): Promise<Map<string, CheckpointRow>>;
  /**
   * Saves one checkpoint and its event. STEP is written once: when the key exists already, its saved data is returned
   * and nothing is written. Others replace. @throws LeaseLost
   */
  saveCheckpoint(write: CheckpointWrite): Promise<{ data: unknown; existed: boolean }>;
  /**
   * Runs `fn` in a transaction and commits its writes together with the checkpoint that it returns; the fence is the
   * last statement before COMMIT. When the key exists already (STEP), or its saved counts are as far (CURSOR: the commit
   * of an earlier try came after all), `fn`'s writes are rolled back and the saved data is returned. @throws LeaseLost
   */
  transaction(
    jobId: string,
    attempt: number,
    fn: (tx: Tx) => Promise<CheckpointWrite>,
  ): Promise<{ data: unknown; existed: boolean }>;
  /**
   * Opens an approval; when the key has one, that is given. `state` may already be decided. @throws LeaseLost
   */
  openApproval(opening: ApprovalOpening): Promise<{ id: string; expiresAt: string | null; state: string }>;
  /**
   * Submits jobs exactly once, with the checkpoint of `key`; a second call gives the ids of the first. Stored ids, in order.
   * @throws LeaseLost, InvalidInput, UnknownTask, IdempotencyConflict, PayloadTooLarge, NotFound; `path` is `jobs[i]`
   */
  submitFromHandler(from: JobsFromHandler): Promise<string[]>;
  /**
   * Submits a job in a handler's open transaction: it exists if and only if that commits, and starts with the next poll.
   * Its stored id. @throws as `submit`
   */
  submitWithin(tx: unknown, parentId: string, job: JobsFromHandler['jobs'][number]): Promise<string>;
  /** How jobs stand, in the order of their ids (stored form); those that are gone are left out. */
  outcomes(jobIds: readonly string[]): Promise<OutcomeRow[]>;
  /** How the jobs stand that this one depends on, in the order in which they were given. */
  dependencies(jobId: string): Promise<OutcomeRow[]>;
  /** The abort signal fired in the handler: one more rung of the ladder, once. */
  cancelDelivered(jobId: string, attempt: number): Promise<void>;
  appendLogs(lines: readonly LogWrite[]): Promise<void>;
  /** The worker is gone in good order: what it still ran, if anything, is rescued by the next sweep and not after its lease. */
  workerStopped(workerId: string): Promise<void>;
}

/** One bounded pass each; safe in any number of processes at once. They return how much they did. */
export interface MaintenanceEngine {
  /** Due SCHEDULED and RETRYING jobs become QUEUED. `nextDueMs`: until the next known due time, null when none. */
  stage(): Promise<{ staged: number; nextDueMs: number | null }>;
  /** Schedules that are due submit their jobs. `nextDueMs`: until the next one is due, null when none will be. */
  fire(): Promise<{ fired: number; nextDueMs: number | null }>;
  /** Workers past their lease become LOST, their jobs go back; jobs that do not advance end their attempt. */
  rescue(): Promise<{ lostWorkers: number; rescued: number }>;
  /**
   * For the sole owner of an embedded database, before its own worker starts: whatever worker was there before is gone
   * for certain, so its jobs go back at once and not after a lease.
   */
  recover(): Promise<{ lostWorkers: number; rescued: number }>;
  /** Tells dependants, parents, children and keys what a process that died had left to be told. */
  followUp(): Promise<{ done: number }>;
  /** Ends approvals whose time is over. `nextDueMs`: until the next known one, null when none expires. */
  expire(): Promise<{ expired: number; nextDueMs: number | null }>;
  /** Removes what is past its retention. */
  prune(): Promise<{ pruned: number }>;
  /** Folds count deltas. */
  fold(): Promise<{ folded: number }>;
}

/** Settings of the engine, in milliseconds and bytes. */
export interface EngineOptions {
  leaseMs: number;
  sweepMs: number;
  priorityStepMs: number;
  retainMs: { completed: number; failed: number; canceled: number; keys: number };
  maxBytes: { input: number; result: number; checkpoint: number };
}
