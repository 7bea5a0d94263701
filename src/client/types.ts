import type { ApprovalState } from '../core/approval.ts';
import type { AttemptOutcome, JobState } from '../core/state.ts';
import type { Approval, Decision } from './approval-types.ts';

/** What the service says about a job: the same names as its GraphQL type. Times are RFC 3339, durations `"5s"`. */
export interface Job {
  id: string;
  task: string;
  title: string;
  queue: string;
  priority: number;
  tags: string[];
  state: JobState;
  isTerminal: boolean;
  /** 1, 2, …: a retry of a finished job opens the next. */
  run: number;
  /** Grows with every change; the client drops what is older than what it has given. */
  version: number;
  /** `seq` of the newest event. */
  lastSeq: number;
  submittedBy: string;
  idempotencyKey: string | null;
  inputDigest: string;
  resultDigest: string | null;
  attemptNumber: number;
  failures: number;
  maxAttempts: number;
  runAt: string;
  createdAt: string;
  queuedAt: string | null;
  startedAt: string | null;
  updatedAt: string;
  finishedAt: string | null;
  /** The last one; set in RETRYING and FAILED. */
  error: JobError | null;
  /** Null before the first report. */
  progress: Progress | null;
  cancellation: { requestedAt: string; requestedBy: string | null; reason: string | null } | null;
  /** Why it is not running. Only where one job was asked for, not in streams and lists. */
  waitingOn?: WaitingOn | null;
  /** What whoever asks may do with it now. Only where one job was asked for or is watched. */
  actions?: JobAction[];
  /** Only where one job was asked for. */
  input?: unknown;
  result?: unknown;
}

/** `CANCEL` stands for `cancel`, `RETRY` for `retry`, `RUN_NOW` for `runNow`, `APPROVE` and `REJECT` for a decision. */
export type JobAction = 'CANCEL' | 'RETRY' | 'RUN_NOW' | 'APPROVE' | 'REJECT';

export interface Progress {
  stage: string | null;
  /** Counts from 0. */
  stageIndex: number | null;
  stageCount: number | null;
  nextStage: string | null;
  current: number | null;
  total: number | null;
  unit: string | null;
  message: string | null;
  /** 0…1 when the total is known. */
  fraction: number | null;
  ratePerSecond: number | null;
  etaSeconds: number | null;
  data: unknown;
  updatedAt: string;
}

export interface JobError {
  code: string;
  message: string;
  retryable: boolean;
  attempt: number;
  at: string;
}

export interface WaitingOn {
  kind: string;
  /** One readable sentence. */
  detail: string;
  until: string | null;
  /** What it asks people: those that are open. */
  approvals: Approval[];
}

interface EventFields<Type extends string> {
  type: Type;
  /** 1, 2, 3… per job without gaps. */
  seq: number;
  at: string;
  jobId: string;
  run: number;
  attempt: number | null;
  actor: string | null;
  /** The job's state after this fact. */
  state: JobState;
  /** One readable sentence. */
  summary: string;
}

/** A deliverable of a job. */
export interface Artifact {
  name: string;
  mediaType: string;
  bytes: number;
  /** Hex. */
  sha256: string;
  /** Signed, for about 15 minutes: whoever has it needs no token. */
  url: string;
  createdAt: string;
}

/** A fact about a job. The service may learn new types: pass over those you do not know. */
export type JobEvent =
  | (EventFields<'JobSubmitted'> & { inputDigest: string })
  | (EventFields<'JobQueued'> & { reason: string | null })
  | (EventFields<'AttemptStarted'> & { workerId: string; resumedFrom: string | null })
  | (EventFields<'CheckpointSaved'> & {
      key: string;
      kind: string;
      processed: number | null;
      succeeded: number | null;
      failed: number | null;
    })
  | (EventFields<'AttemptEnded'> & { outcome: AttemptOutcome; error: JobError | null })
  | (EventFields<'RetryScheduled'> & { runAt: string })
  | (EventFields<'JobSuspended'> & { waitingKind: string; detail: string; until: string | null })
  // Scalars are as of then, the approval is as of now.
  | (EventFields<'ApprovalRequested'> & { key: string; title: string; approval: Pick<Approval, 'id' | 'state'> })
  | (EventFields<'ApprovalDecided'> & {
      key: string;
      decision: Decision;
      approvalState: ApprovalState;
      approval: Pick<Approval, 'id' | 'state'>;
    })
  | (EventFields<'CancelRequested'> & { reason: string | null })
  | EventFields<'CancelDelivered'>
  | (EventFields<'ArtifactStored'> & { artifact: Artifact })
  | (EventFields<'JobCompleted'> & { result: unknown })
  | (EventFields<'JobFailed'> & { error: JobError | null })
  | (EventFields<'JobCanceled'> & { reason: string | null });

/** What may be said about a job at submit. Durations are written `"5s"`, `"10m"`. */
export interface SubmitOptions {
  /** Default: random, so that repeating a submit whose answer was lost gives the same job. */
  idempotencyKey?: string;
  /** `UNTIL_FINISHED` frees the key when the job ends. Default `RETENTION`. */
  keyScope?: 'RETENTION' | 'UNTIL_FINISHED';
  title?: string;
  queue?: string;
  /** −100…100. */
  priority?: number;
  tags?: readonly string[];
  /** Not before this moment. Exclusive with `delay`. */
  runAt?: Date | string;
  delay?: string;
  maxAttempts?: number;
  timeout?: string;
  /** Of jobs with the same key one at a time is run. */
  concurrencyKey?: string;
  /**
   * Jobs (by id) that go first. `policy` says what becomes of this one when such a job does not complete: `CANCEL` (the
   * default), `FAIL` or `CONTINUE`.
   */
  dependsOn?: readonly (string | { jobId: string; policy?: 'CANCEL' | 'FAIL' | 'CONTINUE' })[];
  backoff?: { type: 'FIXED' | 'EXPONENTIAL'; delay: string; factor?: number; max?: string; jitter?: number };
}

/** As the GraphQL type: fields AND, values of a list OR (`tags`: all of them). */
export interface JobFilter {
  states?: readonly JobState[];
  tasks?: readonly string[];
  queues?: readonly string[];
  tags?: readonly string[];
  ids?: readonly string[];
  graphId?: string;
  parentId?: string;
  idempotencyKey?: string;
  errorCodes?: readonly string[];
  createdAfter?: string;
  createdBefore?: string;
  text?: string;
}

/** What a call on all jobs of a filter did. Repeat it until nothing remains. */
export interface BulkResult {
  /** Jobs that matched as it began. */
  matched: number;
  changed: number;
  /** Left for the next call: one does at most 10,000. */
  remaining: number;
}

export interface BulkOptions {
  reason?: string;
  /** Only if as many jobs match, else `COUNT_CHANGED` and nothing is done. */
  expectedCount?: number;
  /** Only counts. */
  dryRun?: boolean;
}
