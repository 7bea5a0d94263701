import type { DependencyPolicy } from '../../core/job.ts';
import type { JobState } from '../../core/state.ts';
import type { ChangeRow } from '../changes.ts';
import { column, jsonColumn, pgArray, pgTextArray, textColumn } from '../sql.ts';
import type { Executor, SqlParam } from '../types.ts';
import { submitStatement } from './submit-statement.ts';

/** A job to be written, checked and complete. */
export interface NewJob {
  id: string;
  tenant: string;
  task: string;
  title: string | null;
  queue: string;
  priority: number;
  tags: readonly string[];
  inputDigest: string;
  idempotencyKey: string | null;
  keyScope: 'RETENTION' | 'UNTIL_FINISHED';
  submittedBy: string;
  concurrencyKey: string | null;
  maxAttempts: number;
  timeoutMs: number | null;
  stallTimeoutMs: number | null;
  /** JSON text. */
  backoff: string;
  runAt: string | null;
  delayMs: number | null;
  /** JSON text; null: no input was given. */
  input: string | null;
  /** What ties it to others; null: nothing. */
  links: JobLinks | null;
}

/** What a job belongs to, and what it waits for. Ids in stored form. */
export interface JobLinks {
  parentId: string | null;
  graphId: string | null;
  nodeName: string | null;
  scheduleId: string | null;
  /** In the order in which they were given. It is DEFERRED while one of them is not satisfied. */
  dependsOn: readonly Upstream[];
  /** Jobs that are written with it depend on it. */
  followed: boolean;
}

/** A job that must go before another. */
export interface Upstream {
  upstreamId: string;
  policy: DependencyPolicy;
  /** It had come to its end, and so does not hold the other up. */
  satisfied: boolean;
}

/** Links of a job that has none. */
export const NO_LINKS: JobLinks = {
  parentId: null,
  graphId: null,
  nodeName: null,
  scheduleId: null,
  dependsOn: [],
  followed: false,
};

/** What became of a NewJob. `inserted` is null when the job was there already: under its key, or by a repeated call. */
export interface SubmitRow {
  id: string;
  /** The job that the key belongs to; the job's own id when it has no key. */
  jobId: string;
  /** Digest and scope stored with the key; null without one. */
  keyDigest: string | null;
  keyScope: 'RETENTION' | 'UNTIL_FINISHED' | null;
  inserted: InsertedRow | null;
}

/** The change that a submit made, with what the store alone knows of the new job. */
export interface InsertedRow extends ChangeRow {
  rank: string;
  runAt: string;
}

interface AnswerRow {
  id: string;
  /** Null when the job was there already; so are the next three. */
  state: JobState | null;
  at: string | null;
  rank: string | null;
  runAt: string | null;
  keyJobId?: string | null;
  keyDigest?: string | null;
  keyScope?: 'RETENTION' | 'UNTIL_FINISHED' | null;
}

/**
 * (new) → DEFERRED | SCHEDULED | QUEUED, any number of jobs in one statement and one round trip. Equal keys must have been folded
 * by the caller: the statement fails on them (E2). Rows come back in no particular order.
 * @param options.repeated the same jobs may have been written by an earlier call whose answer was lost
 */
export async function submit(
  db: Executor,
  jobs: readonly NewJob[],
  options: { priorityStepMs: number; retainKeysMs: number; repeated?: boolean },
): Promise<SubmitRow[]> {
  const keyed = jobs.some((j) => j.idempotencyKey !== null);
  const linked = jobs.some((j) => j.links !== null || j.concurrencyKey !== null);
  const params: SqlParam[] = [
    pgArray(jobs.map((j) => j.id)),
    pgTextArray(jobs.map((j) => j.tenant)),
    pgTextArray(jobs.map((j) => j.task)),
    textColumn(jobs.map((j) => j.title)),
    pgTextArray(jobs.map((j) => j.queue)),
    pgArray(jobs.map((j) => j.priority)),
    pgTextArray(jobs.map((j) => pgTextArray(j.tags))),
    pgTextArray(jobs.map((j) => j.inputDigest)),
    textColumn(jobs.map((j) => j.idempotencyKey)),
    pgTextArray(jobs.map((j) => j.keyScope)),
    pgTextArray(jobs.map((j) => j.submittedBy)),
    textColumn(jobs.map((j) => j.concurrencyKey)),
    pgArray(jobs.map((j) => j.maxAttempts)),
    column(jobs.map((j) => j.timeoutMs)),
    column(jobs.map((j) => j.stallTimeoutMs)),
    jsonColumn(jobs.map((j) => j.backoff)),
    textColumn(jobs.map((j) => j.runAt)),
    column(jobs.map((j) => j.delayMs)),
    jsonColumn(jobs.map((j) => j.input)),
    options.priorityStepMs,
  ];
  if (keyed) params.push(options.retainKeysMs);
  if (linked) params.push(...linkParams(jobs));
  const text = submitStatement({ keyed, repeated: options.repeated ?? false, linked });
  const rows = await db.query<AnswerRow>(text, params);
  const byId = new Map(jobs.map((job) => [job.id, job]));
  return rows.map((row) => ({
    id: row.id,
    jobId: row.keyJobId ?? row.id,
    keyDigest: row.keyDigest ?? null,
    keyScope: row.keyScope ?? null,
    inserted: insertedRow(byId.get(row.id) as NewJob, row),
  }));
}

function linkParams(jobs: readonly NewJob[]): SqlParam[] {
  const links = jobs.map((j) => j.links ?? NO_LINKS);
  const edges = jobs.flatMap((job, i) =>
    (links[i] as JobLinks).dependsOn.map((upstream, position) => ({ job: job.id, position, ...upstream })),
  );
  return [
    column(links.map((l) => l.parentId)),
    column(links.map((l) => l.graphId)),
    textColumn(links.map((l) => l.nodeName)),
    column(links.map((l) => l.scheduleId)),
    pgArray(links.map((l) => l.dependsOn.some((u) => !u.satisfied))),
    pgArray(links.map((l) => l.dependsOn.length > 0)),
    pgArray(links.map((l) => l.followed)),
    pgArray(edges.map((e) => e.job)),
    pgArray(edges.map((e) => e.upstreamId)),
    pgTextArray(edges.map((e) => e.policy)),
    pgArray(edges.map((e) => e.position)),
    pgArray(edges.map((e) => e.satisfied)),
  ];
}

function insertedRow(job: NewJob, { state, at, rank, runAt }: AnswerRow): InsertedRow | null {
  if (state === null || at === null || rank === null || runAt === null) return null;
  return {
    id: job.id,
    tenant: job.tenant,
    task: job.task,
    queue: job.queue,
    fromState: null,
    state,
    version: 1,
    lastSeq: 1,
    run: 1,
    seq: 1,
    at,
    type: 'JobSubmitted',
    attempt: null,
    actor: job.submittedBy,
    data: { inputDigest: job.inputDigest },
    rank,
    runAt,
  };
}
