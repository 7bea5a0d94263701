import { WaymarkError } from '../../src/core/errors.ts';
import { DEFAULT_TENANT, type JobRow } from '../../src/core/job.ts';
import type { ProgressState } from '../../src/core/progress.ts';
import type { Action, ActionOf, ExpectedRun, Target } from './action.ts';
import type { Bench } from './bench.ts';
import type { Answer, ModelWorker, World } from './model.ts';
import { isLeaseOver } from './model-attempts.ts';
import { ACTOR, jobOf } from './model-clients.ts';

/** One action, addressed. Both sides may be called again, as by a caller that repeats itself. */
export interface Step {
  engine: () => Promise<Answer>;
  /** The engine's answer tells only what the model cannot know: the ids of new jobs. */
  model: (answer: Answer) => Answer;
}

/** What actions mean for the jobs and workers of the moment; null: there is nothing that it could be done to. */
export type Steps<K extends Action['do']> = {
  [A in K]: (action: ActionOf<A>, world: World, bench: Bench) => Step | null;
};

export const caller = { tenant: DEFAULT_TENANT, actor: ACTOR };

/** What a call gave, or the code of an expected error. Any other error is a finding, and is thrown. */
export async function answered(call: Promise<unknown>): Promise<Answer> {
  try {
    return { value: await call };
  } catch (error) {
    if (error instanceof WaymarkError) return { error: error.code };
    throw error;
  }
}

export function silent(call: Promise<unknown>): Promise<Answer> {
  return answered(call.then(() => null));
}

/** Any job there is or was, the newest first. */
export function idAt(world: World, place: number): string | null {
  const ids = [...world.gone, ...world.jobs.map((job) => job.id)].reverse();
  return ids[place % ids.length] ?? null;
}

/** Mostly one that may claim; the last places are for any worker, also a lost one. */
export function workerAt(world: World, place: number): string {
  const live = liveWorkers(world);
  const among = live.length > 0 && place < 3 ? live : world.workers;
  return (among[place % among.length] as ModelWorker).id;
}

export function liveWorkers(world: World): ModelWorker[] {
  return world.workers.filter((worker) => worker.state === 'ACTIVE' && !isLeaseOver(world, worker));
}

export function attemptAt(
  world: World,
  { job: place, late, attempt }: Target,
): { jobId: string; attempt: number } | null {
  const running = world.jobs.filter((job) => job.state === 'RUNNING');
  const job = (late ? world.jobs : running)[place % Math.max(1, late ? world.jobs.length : running.length)];
  if (!job) return null;
  // One more than were ever made: an attempt of the future must be refused like one of the past.
  return { jobId: job.id, attempt: late ? 1 + (attempt % (job.attempt + 1)) : job.attempt };
}

export function runFor(world: World, id: string, run: ExpectedRun): number | null {
  if (run === 'any') return null;
  return (jobOf(world, id)?.run ?? 1) + (run === 'right' ? 0 : 1);
}

export function gauge(current: number): ProgressState {
  return {
    stage: null,
    stageIndex: null,
    stageCount: null,
    nextStage: null,
    current,
    total: null,
    unit: null,
    message: null,
    data: null,
    ratePerSecond: null,
    updatedAt: '2026-01-01T00:00:00.000Z',
  };
}

/** A row of the engine as the model shows its jobs. */
export function shownRow({ id, state, run, epoch, attempt, failures, version, lastSeq, prunedAt }: JobRow): object {
  return { id, state, run, epoch, attempt, failures, version, lastSeq, pruned: prunedAt !== null };
}
