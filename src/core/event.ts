import type { JsonValue } from './json.ts';
import type { AttemptOutcome, JobState } from './state.ts';

/** Every kind of fact about a job. New kinds may be added; a client must pass over those it does not know. */
export const EVENT_TYPES = [
  'JobSubmitted',
  'JobQueued',
  'AttemptStarted',
  'CheckpointSaved',
  'AttemptEnded',
  'RetryScheduled',
  'JobSuspended',
  'ApprovalRequested',
  'ApprovalDecided',
  'CancelRequested',
  'CancelDelivered',
  'ArtifactStored',
  'JobCompleted',
  'JobFailed',
  'JobCanceled',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** Events after which nothing follows in the same run. */
export const TERMINAL_EVENTS: readonly EventType[] = ['JobCompleted', 'JobFailed', 'JobCanceled'];

/**
 * A fact about a job, as stored and as sent over the live channel. `seq` counts 1, 2, 3… per job without gaps.
 * What else a kind carries is in `data`, as of the moment it happened.
 */
export interface JobEvent {
  /** Stored (UUID) form. */
  jobId: string;
  seq: number;
  /** Postgres's text form of a timestamptz in UTC, microseconds kept. */
  at: string;
  type: EventType;
  run: number;
  attempt: number | null;
  actor: string | null;
  /** The job's state after this fact. */
  state: JobState;
  data: EventData;
}

/** The fields of all kinds together; each kind uses those that its GraphQL type names. */
export interface EventData {
  inputDigest?: string;
  reason?: string | null;
  workerId?: string;
  resumedFrom?: string | null;
  key?: string;
  kind?: string;
  /** ArtifactStored: the record as it was stored. */
  name?: string;
  mediaType?: string;
  bytes?: number;
  sha256?: string;
  createdAt?: string;
  processed?: number | null;
  succeeded?: number | null;
  failed?: number | null;
  outcome?: AttemptOutcome;
  error?: JobErrorData | null;
  runAt?: string;
  waitingKind?: string;
  detail?: string;
  until?: string | null;
  /** JobCompleted: the result, when it was small enough to be sent along; absent means "read it from the job". */
  result?: JsonValue;
  [more: string]: unknown;
}

/** An error as it is recorded. */
export interface JobErrorData {
  code: string;
  message: string;
  retryable: boolean;
  stack?: string | null;
  attempt: number;
  /** RFC 3339. */
  at: string;
}

/** One readable sentence about a fact, for timelines and command lines. */
export function summarize(event: JobEvent): string {
  const { data, attempt, actor } = event;
  const by = actor ? ` by ${actor}` : '';
  const because = data.reason ? `: ${data.reason}` : '';
  switch (event.type) {
    case 'JobSubmitted':
      return `Submitted${by}`;
    case 'JobQueued':
      return `Queued${because}`;
    case 'AttemptStarted':
      return data.resumedFrom ? `Attempt ${attempt} started behind ${data.resumedFrom}` : `Attempt ${attempt} started`;
    case 'CheckpointSaved':
      return data.processed == null
        ? `Checkpoint ${data.key} saved`
        : `Checkpoint ${data.key} saved: ${data.processed} processed`;
    case 'AttemptEnded':
      return `Attempt ${attempt} ended: ${data.outcome}${data.error ? `, ${data.error.message}` : ''}`;
    case 'RetryScheduled':
      return `Next attempt at ${data.runAt}${because}`;
    case 'JobSuspended':
      return data.detail ?? 'Waiting';
    case 'ApprovalRequested':
      return `Approval ${data.key} requested`;
    case 'ApprovalDecided':
      return `Approval ${data.key} decided${by}`;
    case 'CancelRequested':
      return `Cancel requested${by}${because}`;
    case 'CancelDelivered':
      return 'Cancel delivered to the handler';
    case 'ArtifactStored':
      return `Artifact ${data.name ?? ''} stored`;
    case 'JobCompleted':
      return 'Completed';
    case 'JobFailed':
      return `Failed${data.error ? `: ${data.error.message}` : ''}`;
    case 'JobCanceled':
      return `Canceled${by}${because}`;
  }
}
