import { IdempotencyConflict, InvalidInput, Unavailable } from '../core/errors.ts';
import { type NewJob, type SubmitRow, submit as submitRows } from '../db/transitions/submit.ts';
import type { Database, Executor } from '../db/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import { createBatcher } from './batcher.ts';
import { announce } from './commit.ts';
import type { FollowUps } from './follow-ups.ts';
import { newJobRow } from './new-job-row.ts';
import type { Prepare } from './prepare.ts';
import type { EngineOptions, JobsEngine, Submitted } from './types.ts';
import { type PlacedJob, resolveUpstreams } from './upstreams.ts';

export const MAX_BULK = 1_000;

/** Submitting: checks, then one statement; concurrent calls share it. */
export function createSubmit(
  database: Database,
  channel: LiveChannel,
  options: EngineOptions,
  { prepare, followUps }: { prepare: Prepare; followUps: FollowUps },
): Pick<JobsEngine, 'submit' | 'submitMany'> {
  const db = database.submit;
  const settings = { priorityStepMs: options.priorityStepMs, retainKeysMs: options.retainMs.keys };

  // Keyed submits may wait for another caller's open transaction that holds the key: they share no statement with others.
  const shared = { isShared: (e: unknown) => e instanceof Unavailable, maxSize: 500 };
  const plain = createBatcher<NewJob, SubmitRow>((jobs) => write(jobs), { ...shared, parallel: 2 });
  const keyed = createBatcher<NewJob, SubmitRow>((jobs) => writeKeyed(jobs), { ...shared, parallel: 4 });

  async function write(jobs: NewJob[]): Promise<SubmitRow[]> {
    const rows = await withRetry((repeated) => submitRows(db, jobs, { ...settings, repeated }));
    announce(
      channel,
      rows.flatMap((r) => r.inserted ?? []),
    );
    return inOrder(jobs, rows);
  }

  /** Equal keys are folded to their first job; the others get its row, as if they had come a moment later. */
  async function writeKeyed(jobs: NewJob[]): Promise<SubmitRow[]> {
    const first = new Map<string, NewJob>();
    for (const job of jobs) if (!first.has(keyOf(job))) first.set(keyOf(job), job);
    const leaders = [...first.values()];
    const rows = new Map((await write(leaders)).map((row, i) => [keyOf(leaders[i] as NewJob), row]));
    return jobs.map((job) => rows.get(keyOf(job)) as SubmitRow);
  }

  return {
    async submit(caller, request, more = {}) {
      const job = await prepare(caller, request, more);
      if (more.tx) return (await bulk(more.tx, [{ job, path: more.path ?? '' }]))[0] as Submitted;
      if (job.links?.dependsOn.length) return (await whole([{ job, path: more.path ?? '' }]))[0] as Submitted;
      const row = await (mayWait(job) ? keyed : plain).add(job);
      return fate(job, row, null, more.path);
    },

    async submitMany(caller, requests, more = {}) {
      if (requests.length > MAX_BULK) {
        throw new InvalidInput([{ path: 'inputs', message: `must not be more than ${MAX_BULK}` }]);
      }
      const jobs: NewJob[] = [];
      for (const [i, request] of requests.entries()) {
        jobs.push(await prepare(caller, request, { path: `inputs[${i}]`, ...(more.tx ? { tx: more.tx } : {}) }));
      }
      if (jobs.length === 0) return [];
      const placed = jobs.map((job, i) => ({ job, path: `inputs[${i}]` }));
      if (more.tx) return bulk(more.tx, placed);
      if (jobs.some((job) => mayWait(job) || job.links?.dependsOn.length)) return whole(placed);
      return (await write(jobs)).map((row, i) => fate(jobs[i] as NewJob, row, null, `inputs[${i}]`));
    },
  };

  /** In a transaction of its own: upstream jobs are locked before, and a conflict undoes the whole call. */
  async function whole(placed: readonly PlacedJob[]): Promise<Submitted[]> {
    const done = await withRetry((repeated) => db.transaction((tx) => bulk(tx, placed, repeated)));
    for (const { wake } of done) wake();
    return done;
  }

  async function bulk(tx: Executor, placed: readonly PlacedJob[], repeated = false): Promise<Submitted[]> {
    const { jobs, ended } = await resolveUpstreams(tx, placed[0]?.job.tenant ?? '', placed);
    const leaders = new Map<string, NewJob>();
    for (const job of jobs) if (!leaders.has(keyOf(job))) leaders.set(keyOf(job), job);
    const rows = await submitRows(tx, [...leaders.values()], { ...settings, repeated });
    const byId = new Map(rows.map((row) => [row.id, row]));
    return jobs.map((job, i) => {
      const row = byId.get((leaders.get(keyOf(job)) as NewJob).id) as SubmitRow;
      const submitted = fate(job, row, channel, placed[i]?.path || undefined);
      if (i > 0 || ended.length === 0) return submitted;
      const { wake } = submitted;
      return {
        ...submitted,
        wake: () => {
          wake();
          followUps.soon(ended);
        },
      };
    });
  }
}

/** It may have to wait for another caller's open transaction, which holds its key. */
function mayWait(job: NewJob): boolean {
  return job.idempotencyKey !== null || job.concurrencyKey !== null;
}

/** Equal for jobs that stand for one. */
function keyOf(job: NewJob): string {
  return job.idempotencyKey === null ? job.id : JSON.stringify([job.tenant, job.task, job.idempotencyKey]);
}

function inOrder(jobs: readonly NewJob[], rows: readonly SubmitRow[]): SubmitRow[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return jobs.map((job) => byId.get(job.id) as SubmitRow);
}

/** The answer to one submit. @throws IdempotencyConflict */
function fate(job: NewJob, row: SubmitRow, wakeBy: LiveChannel | null, path: string | undefined): Submitted {
  const deduplicated = row.jobId !== job.id;
  if (deduplicated && row.keyScope === 'RETENTION' && row.keyDigest !== job.inputDigest) {
    throw new IdempotencyConflict(job.idempotencyKey ?? '', row.jobId, job.inputDigest, row.keyDigest ?? '', path);
  }
  const { inserted } = row;
  return {
    jobId: row.jobId,
    deduplicated,
    job: inserted && !deduplicated ? newJobRow(job, inserted) : null,
    wake: () => {
      if (wakeBy && inserted && inserted.id === row.jobId) announce(wakeBy, [inserted]);
    },
  };
}

/**
 * Repeats once when the connection broke in mid-call: the write may have happened, but the ids were made before, so the
 * repetition finds them and writes nothing twice.
 */
export async function withRetry<T>(fn: (repeated: boolean) => Promise<T>): Promise<T> {
  try {
    return await fn(false);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    return fn(true);
  }
}
