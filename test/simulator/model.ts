import type { AttemptOutcome, JobState } from '../../src/core/state.ts';

/**
 * The state machine once more, as plain data and plain code, written from the design and from what the engine promises
 * and not from its SQL: what the two do not agree on is a fault of one of them.
 *
 * Time is a number: whole hours, which only the fake clock adds, and one for each command carried out. So no two
 * commands share a moment, and everything that waits does so for hours, beside which the real time of a trial is nothing.
 */
export const HOUR = 1_000_000;

/** What never changes about a task. Delays between attempts have no jitter here. */
export interface ModelTask {
  readonly name: string;
  readonly maxAttempts: number;
  readonly stallHours: number | null;
  /** Hours to wait after the first, the second… failure of a run that a rescue counts. */
  readonly backoffHours: readonly number[];
}

export const TASKS: readonly ModelTask[] = [
  { name: 'alpha', maxAttempts: 2, stallHours: null, backoffHours: [1] },
  { name: 'beta', maxAttempts: 3, stallHours: 2, backoffHours: [1, 2] },
];

export const LEASE_HOURS = 4;
/** One step of priority outweighs this much waiting. */
export const PRIORITY_STEP_HOURS = 2;
export const RETAIN_HOURS = { COMPLETED: 24, FAILED: 48, CANCELED: 24, keys: 36 } as const;
/** After this many releases in a row one more counts as a stall. */
export const RELEASES_IN_A_ROW = 20;
/** A run may postpone itself this often. */
export const POSTPONEMENTS = 1_000;

export type KeyScope = 'RETENTION' | 'UNTIL_FINISHED';

/** What an event says, as far as the contract fixes it; texts that the engine words itself are left out. */
export interface ModelEvent {
  type: string;
  run: number;
  attempt: number | null;
  actor: string | null;
  state: JobState;
  outcome?: AttemptOutcome;
  error?: string | null;
  key?: string;
  worker?: string;
  resumedFrom?: string | null;
  reason?: string | null;
}

export interface ModelAttempt {
  number: number;
  run: number;
  worker: string;
  resumedFrom: string | null;
  outcome: AttemptOutcome | null;
  error: string | null;
  /** What its worker said, to tell a repeated call from a late one. */
  said: string | null;
}

export interface ModelCheckpoint {
  key: string;
  kind: string;
  sequence: number;
  data: unknown;
  attempt: number;
  /** How many items the job has behind it, of a cursor that counts. */
  processed: number | null;
}

export interface ModelCancel {
  by: string;
  reason: string | null;
  delivered: boolean;
  stopped: boolean;
  forced: boolean;
}

export interface ModelJob {
  id: string;
  task: ModelTask;
  input: number;
  priority: number;
  key: string | null;
  keyScope: KeyScope | null;
  state: JobState;
  run: number;
  epoch: number;
  attempt: number;
  failures: number;
  stalls: number;
  releases: number;
  postponements: number;
  version: number;
  seq: number;
  rank: number;
  runAt: number;
  finishedAt: number | null;
  advancedAt: number | null;
  worker: string | null;
  progress: number | null;
  error: { code: string; attempt: number } | null;
  result: string | null;
  resultDigest: string | null;
  cancel: ModelCancel | null;
  prunedAt: number | null;
  events: ModelEvent[];
  attempts: ModelAttempt[];
  checkpoints: ModelCheckpoint[];
}

export interface ModelKey {
  jobId: string;
  input: number;
  scope: KeyScope;
  expiresAt: number;
}

export interface ModelWorker {
  id: string;
  state: 'ACTIVE' | 'DRAINING' | 'LOST';
  leaseUntil: number;
  /** It has given its lease up because its event loop was blocked for too long. */
  hung: boolean;
}

export interface World {
  now: number;
  /** In the order of their submission, which is that of their ids. */
  jobs: ModelJob[];
  /** Ids of jobs that were removed. */
  gone: string[];
  keys: Map<string, ModelKey>;
  workers: ModelWorker[];
  /** Rows that users' transactions have committed. */
  rows: string[];
}

/** What a call answers: its value, or the code of its error. */
export type Answer = { value: unknown } | { error: string };

export function newWorld(workerIds: readonly string[]): World {
  const workers = workerIds.map((id) => ({
    id,
    state: 'ACTIVE' as const,
    leaseUntil: LEASE_HOURS * HOUR,
    hung: false,
  }));
  return { now: 0, jobs: [], gone: [], keys: new Map(), workers, rows: [] };
}

/** To try something on. */
export function copyOf({ now, jobs, gone, keys, workers, rows }: World): World {
  return {
    now,
    jobs: jobs.map((job) => ({
      ...job,
      cancel: job.cancel && { ...job.cancel },
      events: [...job.events],
      attempts: job.attempts.map((attempt) => ({ ...attempt })),
    })),
    gone: [...gone],
    keys: new Map(keys),
    workers: workers.map((worker) => ({ ...worker })),
    rows: [...rows],
  };
}

export function isOver(state: JobState): boolean {
  return state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELED';
}

/** Appends a fact; the job is in its new state already. */
export function tell(job: ModelJob, type: string, more: Partial<ModelEvent> = {}): void {
  job.seq++;
  job.events.push({ type, run: job.run, attempt: null, actor: null, state: job.state, ...more });
}

/** A job's place in line when it becomes ready at `time`. */
export function rankAt(job: Pick<ModelJob, 'priority'>, time: number): number {
  return time - job.priority * PRIORITY_STEP_HOURS * HOUR;
}

/** Puts a waiting or finished job in line. */
export function queue(job: ModelJob, readyAt: number): void {
  job.state = 'QUEUED';
  job.runAt = readyAt;
  job.rank = rankAt(job, readyAt);
  job.version++;
}

/** What clients are told of a job. */
export function shown(job: ModelJob): object {
  const { id, state, run, epoch, attempt, failures, version, seq } = job;
  return { id, state, run, epoch, attempt, failures, version, lastSeq: seq, pruned: job.prunedAt !== null };
}
