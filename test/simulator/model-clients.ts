import {
  type Answer,
  HOUR,
  isOver,
  type KeyScope,
  type ModelJob,
  type ModelKey,
  queue,
  RETAIN_HOURS,
  rankAt,
  shown,
  TASKS,
  tell,
  type World,
} from './model.ts';

/** Who asks, in all trials. */
export const ACTOR = 'user:sim';

export interface Submission {
  task: number;
  input: number;
  priority: number;
  delayHours: number;
  key: string | null;
  scope: KeyScope;
}

/** `jobId` is the expected id, or null where a new job must have been made; `at` is that job, to be given its id. */
export interface Expected {
  jobId: string | null;
  deduplicated: boolean;
}

/** Hands in jobs, all of them or none. New ones take their ids from `ids`, which the engine has made. */
export function submit(world: World, submissions: readonly Submission[], ids: readonly (string | null)[]): Answer {
  const keysBefore = new Map([...world.keys].map(([key, value]) => [key, { ...value }]));
  const jobsBefore = world.jobs.length;
  const fates: Expected[] = [];
  for (const [i, submission] of submissions.entries()) {
    const fate = submitOne(world, submission, ids[i] ?? `unmade-${i}`);
    if (fate === 'conflict') {
      world.jobs.length = jobsBefore;
      world.keys = keysBefore;
      return { error: 'IDEMPOTENCY_CONFLICT' };
    }
    fates.push(fate);
  }
  return { value: fates };
}

function submitOne(world: World, s: Submission, newId: string): Expected | 'conflict' {
  const task = TASKS[s.task % TASKS.length];
  if (!task) throw new Error('no such task');
  if (s.key !== null) {
    const name = keyName(task.name, s.key);
    const held = world.keys.get(name);
    if (held && !isFree(world, held)) {
      if (held.scope === 'RETENTION' && held.input !== s.input) return 'conflict';
      return { jobId: held.jobId, deduplicated: true };
    }
    const expiresAt = world.now + RETAIN_HOURS.keys * HOUR;
    world.keys.set(name, { jobId: newId, input: s.input, scope: s.scope, expiresAt });
  }
  const job: ModelJob = {
    id: newId,
    task,
    input: s.input,
    priority: s.priority,
    key: s.key,
    keyScope: s.key === null ? null : s.scope,
    state: s.delayHours > 0 ? 'SCHEDULED' : 'QUEUED',
    run: 1,
    epoch: 1,
    attempt: 0,
    failures: 0,
    stalls: 0,
    releases: 0,
    postponements: 0,
    version: 1,
    seq: 0,
    rank: 0,
    runAt: world.now + s.delayHours * HOUR,
    finishedAt: null,
    advancedAt: null,
    worker: null,
    progress: null,
    error: null,
    result: null,
    resultDigest: null,
    cancel: null,
    prunedAt: null,
    events: [],
    attempts: [],
    checkpoints: [],
  };
  job.rank = rankAt(job, job.runAt);
  tell(job, 'JobSubmitted', { actor: ACTOR });
  world.jobs.push(job);
  return { jobId: newId, deduplicated: false };
}

export function keyName(task: string, key: string): string {
  return `${task}/${key}`;
}

/**
 * Whether a key may be taken by a new job. RETENTION: at its expiry, whatever became of the job. UNTIL_FINISHED: when
 * the job is finished and not before, "until then every submit returns that job".
 */
export function isFree(world: World, key: ModelKey): boolean {
  if (key.scope === 'UNTIL_FINISHED') return isOver(jobOf(world, key.jobId)?.state ?? 'CANCELED');
  return key.expiresAt <= world.now;
}

export function jobOf(world: World, id: string): ModelJob | undefined {
  return world.jobs.find((job) => job.id === id);
}

export function cancel(world: World, id: string, reason: string | null, expectedRun: number | null): Answer {
  const job = jobOf(world, id);
  if (!job) return { error: 'NOT_FOUND' };
  if (expectedRun !== null && job.run !== expectedRun) return { error: 'INVALID_TRANSITION' };
  if (job.state === 'COMPLETED' || job.state === 'FAILED') return { error: 'INVALID_TRANSITION' };
  if (job.state === 'CANCELED' || job.cancel) return { value: shown(job) };
  const running = job.state === 'RUNNING';
  job.cancel = { by: ACTOR, reason, delivered: false, stopped: !running, forced: false };
  job.version++;
  if (running) {
    tell(job, 'CancelRequested', { attempt: job.attempt, actor: ACTOR, reason });
  } else {
    job.state = 'CANCELED';
    job.finishedAt = world.now;
    tell(job, 'JobCanceled', { actor: ACTOR, reason });
  }
  return { value: shown(job) };
}

export interface RetryOptions {
  expectedRun: number | null;
  fromStart: boolean;
  fromCheckpoint: string | null;
}

export function retry(world: World, id: string, { expectedRun, fromStart, fromCheckpoint }: RetryOptions): Answer {
  if (fromStart && fromCheckpoint !== null) return { error: 'INVALID_INPUT' };
  const job = jobOf(world, id);
  if (!job) return { error: 'NOT_FOUND' };
  if (expectedRun !== null && job.run !== expectedRun) return { error: 'INVALID_TRANSITION' };
  const finished = isOver(job.state);
  if (job.prunedAt !== null || !(finished || isWaitingForTime(job))) return { error: 'INVALID_TRANSITION' };
  const from = job.checkpoints.find((c) => c.key === fromCheckpoint);
  const key = finished && job.keyScope === 'UNTIL_FINISHED' ? keyName(job.task.name, job.key ?? '') : null;
  const held = key === null ? undefined : world.keys.get(key);
  if (held && held.jobId !== id && !isFree(world, held)) return { error: 'INVALID_TRANSITION' };
  if (fromCheckpoint !== null && !from) return { error: 'INVALID_INPUT' };
  if (key !== null) world.keys.set(key, { jobId: id, input: job.input, scope: 'UNTIL_FINISHED', expiresAt: world.now });

  if (from) job.checkpoints = job.checkpoints.filter((c) => c.sequence < from.sequence);
  if (fromStart) {
    job.epoch++;
    job.checkpoints = [];
    job.progress = null;
  }
  job.releases = 0;
  if (finished) {
    job.run++;
    job.failures = 0;
    job.stalls = 0;
    job.postponements = 0;
    job.finishedAt = null;
    job.result = null;
    job.resultDigest = null;
    job.cancel = null;
  }
  queue(job, world.now);
  tell(job, 'JobQueued', { actor: ACTOR, reason: 'retry' });
  return { value: shown(job) };
}

export function runNow(world: World, id: string): Answer {
  const job = jobOf(world, id);
  if (!job) return { error: 'NOT_FOUND' };
  if (!isWaitingForTime(job)) return { error: 'INVALID_TRANSITION' };
  queue(job, world.now);
  tell(job, 'JobQueued', { actor: ACTOR, reason: 'run now' });
  return { value: shown(job) };
}

function isWaitingForTime(job: ModelJob): boolean {
  return job.state === 'SCHEDULED' || job.state === 'RETRYING';
}
