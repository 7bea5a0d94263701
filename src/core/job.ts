import type { JobErrorData } from './event.ts';
import type { ProgressState } from './progress.ts';
import type { AttemptOutcome, JobState } from './state.ts';

/**
 * Words used everywhere:
 * - task: a named kind of work. job: one piece of work of a task. run: one life of a job up to a terminal state.
 * - attempt: one claim of a job by one worker, numbered 1, 2, 3… over the whole job; the number is the fencing token.
 * - worker: one process start, with an id never used again. lease: its time-limited right to write about its jobs.
 * - checkpoint: a named, durable position. progress: a gauge. event: a durable fact, numbered per job.
 * - rank: a job's place in line: the time it became ready, minus priority × step.
 */

/** The actor when authentication is off and the caller names none. */
export const LOCAL_ACTOR = 'user:local';
/** The tenant of everything while there is only one. */
export const DEFAULT_TENANT = 'default';

/** A moment as Postgres prints a timestamptz in UTC, microseconds kept: `2026-11-29 16:02:52.123456+00`. */
export type Timestamp = string;

/** RFC 3339 in UTC with milliseconds, as clients see it. */
export function toIso(at: Timestamp): string {
  if (at === newest.at) return newest.iso;
  const iso = new Date(at.includes('T') ? at : `${at.replace(' ', 'T').replace(/\+00$/, '')}Z`).toISOString();
  newest = { at, iso };
  return iso;
}

/** Jobs submitted or claimed together share their times, and reading one is dear. */
let newest = { at: '', iso: '' };

/** A job as read from the store: what never changes (`jobs`) joined with what does (`job_states`). Ids in stored form. */
export interface JobRow {
  id: string;
  tenant: string;
  task: string;
  /** As given at submit; null: show the task's name. */
  title: string | null;
  queue: string;
  priority: number;
  tags: string[];
  inputDigest: string;
  idempotencyKey: string | null;
  graphId: string | null;
  nodeName: string | null;
  parentId: string | null;
  scheduleId: string | null;
  submittedBy: string;
  concurrencyKey: string | null;
  maxAttempts: number;
  timeoutMs: number | null;
  stallTimeoutMs: number | null;
  createdAt: Timestamp;
  prunedAt: Timestamp | null;

  state: JobState;
  run: number;
  epoch: number;
  attempt: number;
  failures: number;
  version: number;
  lastSeq: number;
  rank: Timestamp;
  runAt: Timestamp;
  queuedAt: Timestamp | null;
  startedAt: Timestamp | null;
  changedAt: Timestamp;
  finishedAt: Timestamp | null;
  lastAdvanceAt: Timestamp | null;
  workerId: string | null;
  progress: ProgressState | null;
  error: JobErrorData | null;
  resultDigest: string | null;
  cancelRequestedAt: Timestamp | null;
  cancelRequestedBy: string | null;
  cancelReason: string | null;
  cancelDeliveredAt: Timestamp | null;
  cancelStoppedAt: Timestamp | null;
  cancelForced: boolean;
  /** Why it is DEFERRED (DEPENDENCIES, CHILDREN) or SCHEDULED (SLEEP; null: its due time). */
  waitingKind: string | null;
}

export interface AttemptRow {
  jobId: string;
  number: number;
  run: number;
  outcome: AttemptOutcome | null;
  error: JobErrorData | null;
  workerId: string;
  startedAt: Timestamp;
  heartbeatAt: Timestamp;
  finishedAt: Timestamp | null;
  resumedFrom: string | null;
}

export const CHECKPOINT_KINDS = ['STEP', 'CURSOR', 'APPROVAL', 'SLEEP', 'CHILDREN', 'VALUE'] as const;
export type CheckpointKind = (typeof CHECKPOINT_KINDS)[number];

/** What an upstream job that did not complete does to the jobs that depend on it. */
export const DEPENDENCY_POLICIES = ['CANCEL', 'FAIL', 'CONTINUE'] as const;
export type DependencyPolicy = (typeof DEPENDENCY_POLICIES)[number];

/** One bad item of a batch, kept as a sample. */
export interface ErrorSample {
  item: unknown;
  message: string;
  attempt: number;
  /** RFC 3339. */
  at: string;
}

/** At most this many error samples are kept per `ctx.batches` key: the first ones, over all attempts. */
export const MAX_ERROR_SAMPLES = 20;

export interface CheckpointRow {
  jobId: string;
  epoch: number;
  key: string;
  /** The `seq` of the event that saved it last: orders the checkpoints of a job. */
  sequence: number;
  kind: CheckpointKind;
  data: unknown;
  attempt: number;
  processed: number | null;
  succeeded: number | null;
  failed: number | null;
  errorSamples: ErrorSample[];
  createdAt: Timestamp;
  updatedAt: Timestamp;
}

export type WorkerState = 'ACTIVE' | 'DRAINING' | 'LOST';

export interface WorkerRow {
  id: string;
  host: string;
  pid: number;
  queues: string[];
  tasks: string[];
  slots: number;
  busy: number;
  state: WorkerState;
  startedAt: Timestamp;
  heartbeatAt: Timestamp;
  leaseUntil: Timestamp;
  /** Since when its event loop has been blocked, when it is. */
  blockedSince: Timestamp | null;
}

export interface QueueRow {
  id: string;
  name: string;
  paused: boolean;
  pausedAt: Timestamp | null;
  pausedBy: string | null;
  pauseReason: string | null;
  maxRunning: number | null;
  rateLimitMax: number | null;
  rateLimitPerMs: number | null;
}

/** Priorities go from −100 to 100; higher goes first. */
export const PRIORITY_RANGE = { min: -100, max: 100 } as const;

/** Longest texts a client may give; longer ones are InvalidInput. */
export const MAX_TEXT = {
  title: 200,
  key: 200,
  queue: 100,
  task: 100,
  tag: 100,
  reason: 500,
  checkpointKey: 200,
  nodeName: 100,
} as const;
export const MAX_TAGS = 20;
export const MAX_ATTEMPTS = 1000;
