import type { ShownApproval } from '../core/approval.ts';
import type { Backoff } from '../core/backoff.ts';
import type { JobErrorData } from '../core/event.ts';
import type { CheckpointKind, CheckpointRow, ErrorSample } from '../core/job.ts';
import type { OutcomeRow } from '../core/outcome.ts';
import type { ProgressState } from '../core/progress.ts';
import type { AttemptOutcome, JobState } from '../core/state.ts';
import type { TaskDefinition } from '../core/task.ts';
import type { ClaimRequest } from '../db/transitions/claim.ts';
import type { Executor, Tx } from '../db/types.ts';
import type { ArtifactVerbs } from './artifact-types.ts';

import type { SubmitRequest } from './submit-types.ts';

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
  /** Its place in the line, in microseconds since 1970; where that is in the future, the moment of the claim. */
  place: number;
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

/** The children of one call, as their parent asks for them. Ids in stored form, each once. */
export interface ChildrenSeen {
  jobId: string;
  attempt: number;
  key: string;
  children: readonly string[];
  /** The run of each whose end the parent was told before; null: it was told of none. */
  seen: readonly number[] | null;
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
  /** How children stand, in the order of their ids; those that are gone are left out. @throws LeaseLost */
  childOutcomes(of: ChildrenSeen): Promise<OutcomeRow[]>;
  /** How the jobs stand that this one depends on, in the order in which they were given. */
  dependencies(jobId: string): Promise<OutcomeRow[]>;
  /** The abort signal fired in the handler: one more rung of the ladder, once. */
  cancelDelivered(jobId: string, attempt: number): Promise<void>;
  appendLogs(lines: readonly LogWrite[]): Promise<void>;
  /** The worker is gone in good order: what it still ran, if anything, is rescued by the next sweep and not after its lease. */
  workerStopped(workerId: string): Promise<void>;
}
