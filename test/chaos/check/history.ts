import type { EventType } from '../../../src/core/event.ts';
import type { AttemptOutcome, JobState } from '../../../src/core/state.ts';
import type { FaultRecord } from '../faults/fault-record.ts';
import type { ToldError } from '../load/error-book.ts';
import type { Following } from '../load/followers.ts';
import type { Accepted } from '../load/job-carrier.ts';

/** Times are milliseconds of this machine's clock, which is Postgres's, too. Ids are public ones. */
export interface JobFact {
  id: string;
  task: string;
  key: string | null;
  parentId: string | null;
  state: JobState;
  run: number;
  attempt: number;
  failures: number;
  maxAttempts: number;
  lastSeq: number;
  version: number;
  /** The worker that owns it, and whether that lives. */
  worker: { id: string; lives: boolean } | null;
  hasResult: boolean;
  result: unknown;
  /** `data` of its last report. */
  progressData: unknown;
  cancelRequestedAt: number | null;
  cancelStoppedAt: number | null;
  cancelForced: boolean;
}

export interface AttemptFact {
  jobId: string;
  number: number;
  run: number;
  outcome: AttemptOutcome | null;
  errorCode: string | null;
  /** Process of its worker; null when the worker is forgotten. */
  pid: number | null;
  startedAt: number;
  finishedAt: number | null;
}

export interface EventFact {
  jobId: string;
  seq: number;
  at: number;
  type: EventType;
  run: number;
  attempt: number | null;
  state: JobState;
}

export interface CheckpointFact {
  jobId: string;
  key: string;
  kind: string;
  attempt: number;
  sequence: number;
  processed: number | null;
  data: unknown;
}

/** A step, as the process that ran it wrote it down. */
export interface LedgerLine {
  jobId: string;
  attempt: number;
  step: number;
  pid: number;
}

/** An end of a process that nobody asked for, or one that went wrong. */
export interface BadEnd {
  service: string;
  detail: string;
}

/** Something that must not grow. */
export interface Resource {
  what: string;
  before: number;
  after: number;
  most: number;
}

/** How long a killed worker's job waited for its next attempt. */
export interface Recovery {
  jobId: string;
  /** The one that was lost. */
  attempt: number;
  ms: number;
  /** Nothing else was wrong at the time. */
  calm: boolean;
}

/** An attempt that was lost to a worker that lived and could reach the store. */
export interface Theft {
  jobId: string;
  attempt: number;
  service: string;
}

/** All that is known of a round when it is over. The checker judges by this alone. */
export interface History {
  accepted: readonly Accepted[];
  /** Accepted ids that an API did not find. */
  unresolved: readonly { id: string; api: number }[];
  jobs: readonly JobFact[];
  attempts: readonly AttemptFact[];
  events: readonly EventFact[];
  checkpoints: readonly CheckpointFact[];
  ledger: readonly LedgerLine[];
  /** Rows that `batches` wrote. */
  written: readonly { jobId: string; rows: number; items: number }[];
  counters: readonly { jobId: string; value: number }[];
  /** Jobs per state as an API counts them. */
  counted: readonly { api: number; state: JobState; count: number }[];
  followings: readonly Following[];
  errors: readonly ToldError[];
  badEnds: readonly BadEnd[];
  resources: readonly Resource[];
  recoveries: readonly Recovery[];
  thefts: readonly Theft[];
  faults: readonly FaultRecord[];
}
