import { type Answer, HOUR, isOver, type ModelJob, queue, RETAIN_HOURS, tell, type World } from './model.ts';
import { endAttempt, isLeaseOver } from './model-attempts.ts';
import { isFree, jobOf, keyName } from './model-clients.ts';

/** Due SCHEDULED and RETRYING jobs become QUEUED, ranked by the time they were due and not by when that was noticed. */
export function stage(world: World): Answer {
  const waiting = () => world.jobs.filter((job) => job.state === 'SCHEDULED' || job.state === 'RETRYING');
  const due = waiting().filter((job) => job.runAt <= world.now);
  for (const job of due) {
    queue(job, job.runAt);
    tell(job, 'JobQueued');
  }
  const next = Math.min(...waiting().map((job) => job.runAt));
  return { value: { staged: due.length, nextDueHours: next === Infinity ? null : hoursFrom(world, next) } };
}

/** Whole hours from now until a moment, negative when it is past. */
export function hoursFrom(world: World, time: number): number {
  // Without the zero, −0 would not be 0.
  return Math.round((time - world.now) / HOUR) + 0;
}

/** Workers past their lease are lost for ever, and their jobs go back; then those jobs that do not advance. */
export function rescue(world: World): Answer {
  const late = world.workers.filter((worker) => worker.state !== 'LOST' && isLeaseOver(world, worker));
  for (const worker of late) worker.state = 'LOST';
  const rescued = rescueAbandoned(world) + rescueStuck(world);
  return { value: { lostWorkers: late.length, rescued } };
}

/** The sole owner of the database has started: whoever was there before is gone. */
export function recover(world: World): Answer {
  const all = world.workers.filter((worker) => worker.state !== 'LOST');
  for (const worker of all) worker.state = 'LOST';
  return { value: { lostWorkers: all.length, rescued: rescueAbandoned(world) } };
}

function rescueAbandoned(world: World): number {
  const of = (hung: boolean) => world.workers.filter((w) => w.state === 'LOST' && w.hung === hung).map((w) => w.id);
  const ranOn = (ids: string[]) => (job: ModelJob) => ids.includes(job.worker ?? '');
  return endAll(world, ranOn(of(false)), 'STALLED') + endAll(world, ranOn(of(true)), 'NOT_ADVANCING');
}

function rescueStuck(world: World): number {
  const isStuck = ({ task, advancedAt }: ModelJob) =>
    task.stallHours !== null && advancedAt !== null && advancedAt + task.stallHours * HOUR <= world.now;
  return endAll(world, isStuck, 'NOT_ADVANCING');
}

function endAll(world: World, which: (job: ModelJob) => boolean, outcome: 'STALLED' | 'NOT_ADVANCING'): number {
  const found = world.jobs.filter((job) => job.state === 'RUNNING' && which(job));
  for (const job of found) {
    const { maxAttempts, backoffHours } = job.task;
    // Named for what it is when every one of its attempts lost its worker.
    const poison = outcome === 'STALLED' && maxAttempts > 1 && job.stalls + 1 === maxAttempts;
    endAttempt(world, job, {
      jobId: job.id,
      attempt: job.attempt,
      outcome,
      error: { code: poison ? 'POISON' : outcome, retryable: true },
      delayHours: backoffHours[job.failures] ?? 0,
    });
  }
  return found.length;
}

/**
 * What is past its retention goes. Of a job whose key holds the bare row stays, so that the key still answers. It goes
 * with its key, or, when another job has taken the key over, once the key would have expired in any case.
 */
export function prune(world: World): Answer {
  let pruned = 0;
  for (const state of ['COMPLETED', 'FAILED', 'CANCELED'] as const) {
    const old = ({ finishedAt }: ModelJob) => (finishedAt ?? Infinity) + RETAIN_HOURS[state] * HOUR <= world.now;
    for (const job of world.jobs.filter((j) => j.state === state && j.prunedAt === null && old(j))) {
      pruned++;
      const key = keyOf(world, job);
      if (key && !isFree(world, key)) strip(world, job);
      else remove(world, job);
    }
  }
  for (const [name, key] of world.keys) {
    if (key.expiresAt > world.now) continue;
    if (!isFree(world, key)) continue;
    pruned++;
    world.keys.delete(name);
    const job = jobOf(world, key.jobId);
    if (job && job.prunedAt !== null) remove(world, job);
  }
  const isLeft = (job: ModelJob) => (job.prunedAt ?? Infinity) + RETAIN_HOURS.keys * HOUR <= world.now;
  for (const job of world.jobs.filter((j) => isLeft(j) && !keyOf(world, j))) {
    pruned++;
    remove(world, job);
  }
  return { value: { pruned } };
}

function keyOf(world: World, job: ModelJob) {
  const key = job.key === null ? undefined : world.keys.get(keyName(job.task.name, job.key));
  return key?.jobId === job.id ? key : undefined;
}

function strip(world: World, job: ModelJob): void {
  job.prunedAt = world.now;
  job.version++;
  job.progress = null;
  job.result = null;
  job.events = [];
  job.attempts = [];
  job.checkpoints = [];
}

function remove(world: World, job: ModelJob): void {
  if (!isOver(job.state)) throw new Error('an unfinished job is never removed');
  world.jobs = world.jobs.filter((other) => other !== job);
  world.gone.push(job.id);
  if (keyOf(world, job)) world.keys.delete(keyName(job.task.name, job.key ?? ''));
}
