import type { AttemptOutcome, JobState } from '../../src/core/state.ts';
import {
  type Answer,
  HOUR,
  isOver,
  LEASE_HOURS,
  type ModelJob,
  type ModelWorker,
  POSTPONEMENTS,
  RELEASES_IN_A_ROW,
  tell,
  type World,
} from './model.ts';
import { jobOf } from './model-clients.ts';

/** Outcomes that use up budget. */
const SPENDS: readonly AttemptOutcome[] = ['FAILED', 'TIMED_OUT', 'STALLED', 'NOT_ADVANCING'];

export function boot(world: World, id: string): Answer {
  const leaseUntil = world.now + LEASE_HOURS * HOUR;
  if (!workerOf(world, id)) world.workers.push({ id, state: 'ACTIVE', leaseUntil, hung: false });
  return { value: null };
}

/** The worker says goodbye: it is lost, and what it ran is found by the next rescue. */
export function leave(world: World, id: string): Answer {
  const worker = workerOf(world, id);
  if (worker) worker.state = 'LOST';
  return { value: null };
}

/** A hung worker beats for the last time: it gives its lease up. */
export function beat(world: World, id: string, draining: boolean, hung: boolean): Answer {
  const worker = workerOf(world, id);
  if (!worker || worker.state === 'LOST') return { value: { alive: false, jobs: [] } };
  worker.leaseUntil = world.now + LEASE_HOURS * HOUR;
  if (draining) worker.state = 'DRAINING';
  const jobs = world.jobs
    .filter((job) => job.state === 'RUNNING' && job.worker === id)
    .map((job) => ({
      jobId: job.id,
      attempt: job.attempt,
      cancel: job.cancel ? { by: job.cancel.by, reason: job.cancel.reason } : null,
    }));
  if (hung) Object.assign(worker, { state: 'LOST', hung });
  return { value: { alive: !hung, jobs } };
}

export function claim(world: World, workerId: string, tasks: readonly string[], limit: number): Answer {
  const worker = workerOf(world, workerId);
  if (worker?.state !== 'ACTIVE' || isLeaseOver(world, worker)) return { value: [] };
  const first = world.jobs
    .filter((job) => job.state === 'QUEUED' && tasks.includes(job.task.name))
    // The sort is stable, so jobs of the same rank stay in the order of their ids.
    .sort((a, b) => a.rank - b.rank)
    .slice(0, limit);
  const started = first.map((job) => start(world, job, workerId));
  return { value: started.sort((a, b) => (a.id < b.id ? -1 : 1)) };
}

/** What the worker is handed. */
export interface Started {
  id: string;
  task: string;
  run: number;
  epoch: number;
  attempt: number;
  failures: number;
  maxAttempts: number;
  input: number;
  resumedFrom: string | null;
}

function start(world: World, job: ModelJob, worker: string): Started {
  job.state = 'RUNNING';
  job.worker = worker;
  job.attempt++;
  job.version++;
  job.advancedAt = world.now;
  const resumedFrom = job.attempt > 1 ? (newest(job)?.key ?? null) : null;
  tell(job, 'AttemptStarted', { attempt: job.attempt, worker, resumedFrom });
  const { attempt, run } = job;
  job.attempts.push({ number: attempt, run, worker, resumedFrom, outcome: null, error: null, said: null });
  return {
    id: job.id,
    task: job.task.name,
    run,
    epoch: job.epoch,
    attempt,
    failures: job.failures,
    maxAttempts: job.task.maxAttempts,
    input: job.input,
    resumedFrom,
  };
}

function newest(job: ModelJob) {
  return job.checkpoints.reduce<ModelJob['checkpoints'][number] | undefined>(
    (a, b) => (a && a.sequence > b.sequence ? a : b),
    undefined,
  );
}

/** Whether what is said about this attempt may change anything: it is the newest and runs. */
function owns(job: ModelJob, attempt: number): boolean {
  return job.state === 'RUNNING' && job.attempt === attempt;
}

export interface End {
  jobId: string;
  attempt: number;
  outcome: AttemptOutcome;
  resultDigest?: string;
  result?: string;
  error?: { code: string; retryable: boolean };
  delayHours?: number;
  forced?: boolean;
  progress?: number;
}

export function settle(world: World, end: End): Answer {
  const job = jobOf(world, end.jobId);
  if (!job) return { value: { status: 'lost' } };
  if (owns(job, end.attempt)) return { value: { status: 'settled', state: endAttempt(world, job, end) } };
  const attempt = job.attempts.find((a) => a.number === end.attempt);
  if (attempt?.outcome && attempt.said === said(end)) return { value: { status: 'repeated', state: job.state } };
  return { value: { status: 'lost' } };
}

/** A repeated call says the same; a late one that says otherwise is refused. */
function said(end: End): string {
  return JSON.stringify([end.outcome, end.resultDigest ?? end.error?.code ?? null]);
}

/** How the attempt counts, which is not always what was said. */
function countsAs(job: ModelJob, outcome: AttemptOutcome): AttemptOutcome {
  // A handler that stopped although nobody canceled has handed its job back.
  const meant = outcome === 'CANCELED' && !job.cancel ? 'RELEASED' : outcome;
  return meant === 'RELEASED' && job.releases >= RELEASES_IN_A_ROW ? 'STALLED' : meant;
}

export function endAttempt(world: World, job: ModelJob, end: End): JobState {
  const outcome = countsAs(job, end.outcome);
  const firstStall = outcome === 'STALLED' && job.stalls === 0;
  job.stalls += outcome === 'STALLED' ? 1 : 0;
  job.failures += SPENDS.includes(outcome) ? 1 : 0;
  job.releases = outcome === 'RELEASED' ? job.releases + 1 : 0;
  job.postponements += outcome === 'POSTPONED' ? 1 : 0;
  const code = errorCode(job, end, outcome);
  const error = code === null ? null : { code, attempt: end.attempt };

  job.state = nextState(job, outcome, firstStall, end.error?.retryable ?? true);
  job.worker = null;
  job.version++;
  if (isOver(job.state)) job.finishedAt = world.now;
  if (job.state === 'RETRYING' || job.state === 'SCHEDULED') job.runAt = world.now + delayOf(end);
  if (SPENDS.includes(outcome) || job.state === 'FAILED') job.error = error;
  if (end.progress !== undefined) job.progress = end.progress;
  const attempt = job.attempts.find((a) => a.number === end.attempt);
  if (attempt) Object.assign(attempt, { outcome, error: error?.code ?? null, said: said(end) });
  tellEnd(job, end, outcome, error?.code ?? null);
  return job.state;
}

/** Who hands a job back says no time; one that counts as stalled for it waits all the same. */
const HANDED_BACK_TOO_OFTEN_MS = 10_000;

function delayOf(end: End): number {
  if (end.outcome === 'RELEASED' || end.outcome === 'CANCELED') return HANDED_BACK_TOO_OFTEN_MS;
  return (end.delayHours ?? 0) * HOUR;
}

/** Where no handler said why, the error says what it was: whatever fails has one. */
function errorCode(job: ModelJob, end: End, outcome: AttemptOutcome): string | null {
  if (outcome === 'STALLED' && end.outcome !== 'STALLED') return 'STALLED';
  if (outcome === 'POSTPONED' && job.postponements > POSTPONEMENTS) return 'RetryLater';
  return end.error?.code ?? null;
}

function nextState(job: ModelJob, outcome: AttemptOutcome, firstStall: boolean, retryable: boolean): JobState {
  if (outcome === 'SUCCEEDED') return 'COMPLETED';
  if (SPENDS.includes(outcome) && (!retryable || job.failures >= job.task.maxAttempts)) return 'FAILED';
  if (job.postponements > POSTPONEMENTS) return 'FAILED';
  // A requested cancel wins every other edge.
  if (job.cancel) return 'CANCELED';
  if (outcome === 'RELEASED' || firstStall) return 'QUEUED';
  return outcome === 'POSTPONED' ? 'SCHEDULED' : 'RETRYING';
}

function tellEnd(job: ModelJob, end: End, outcome: AttemptOutcome, error: string | null): void {
  const { attempt } = end;
  if (job.state === 'COMPLETED') {
    job.error = null;
    job.result = end.result ?? null;
    job.resultDigest = end.resultDigest ?? null;
    tell(job, 'JobCompleted', { attempt });
    return;
  }
  tell(job, 'AttemptEnded', { attempt, outcome, error });
  if (job.state === 'FAILED') tell(job, 'JobFailed', { attempt, error });
  else if (job.state === 'QUEUED') tell(job, 'JobQueued', { attempt });
  else if (job.state !== 'CANCELED') tell(job, 'RetryScheduled', { attempt });
  else if (job.cancel) {
    job.cancel.stopped = true;
    job.cancel.forced = end.forced ?? false;
    tell(job, 'JobCanceled', { attempt, actor: job.cancel.by, reason: job.cancel.reason });
  }
}

export interface Save {
  jobId: string;
  attempt: number;
  epoch: number;
  key: string;
  kind: 'STEP' | 'CURSOR';
  data: unknown;
  processed: number | null;
  progress?: number;
  /** A row that the handler writes in the same transaction. */
  row?: string;
}

/**
 * A step's checkpoint is written once: who comes again gets what was saved. Others replace; but the writes of a
 * transaction whose cursor is not ahead of the saved one are those of a commit that came after all.
 */
export function save(world: World, s: Save): Answer {
  const job = jobOf(world, s.jobId);
  if (!job || !owns(job, s.attempt)) return { error: 'LEASE_LOST' };
  const existing = job.checkpoints.find((c) => c.key === s.key);
  const counted = s.row !== undefined && s.processed !== null && s.processed <= (existing?.processed ?? -1);
  if (existing && (s.kind === 'STEP' || counted)) return { value: { data: existing.data, existed: true } };
  job.version++;
  job.advancedAt = world.now;
  if (s.progress !== undefined) job.progress = s.progress;
  tell(job, 'CheckpointSaved', { attempt: s.attempt, key: s.key });
  const { key, kind, data, attempt, processed } = s;
  const saved = { key, kind, sequence: job.seq, data, attempt, processed };
  job.checkpoints = [...job.checkpoints.filter((c) => c !== existing), saved];
  if (s.row !== undefined) world.rows.push(s.row);
  return { value: { data: s.data, existed: false } };
}

/** The gauge is no fact: it has no event. */
export function progress(world: World, jobId: string, attempt: number, value: number): Answer {
  const job = jobOf(world, jobId);
  if (!job || !owns(job, attempt)) return { value: [] };
  job.progress = value;
  job.advancedAt = world.now;
  job.version++;
  return { value: [jobId] };
}

export function cancelDelivered(world: World, jobId: string, attempt: number): Answer {
  const job = jobOf(world, jobId);
  if (job?.cancel && !job.cancel.delivered && owns(job, attempt)) {
    job.cancel.delivered = true;
    job.version++;
    tell(job, 'CancelDelivered', { attempt });
  }
  return { value: null };
}

function workerOf(world: World, id: string): ModelWorker | undefined {
  return world.workers.find((worker) => worker.id === id);
}

export function isLeaseOver(world: World, worker: ModelWorker): boolean {
  return worker.leaseUntil <= world.now;
}
