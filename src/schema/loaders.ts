import DataLoader from 'dataloader';
import type { ApprovalRow, DecisionRow } from '../core/approval.ts';
import type { ArtifactRow } from '../core/artifact.ts';
import type { JobErrorData, JobEvent } from '../core/event.ts';
import type { AttemptRow, CheckpointRow, JobRow, QueueRow, WorkerRow } from '../core/job.ts';
import type { ScheduleRow } from '../core/schedule.ts';
import { approvalsByIds, approvalsOfJobs, decisionsOf } from '../db/reads/approvals.ts';
import { artifactsByNames, artifactsOfJobs } from '../db/reads/artifacts.ts';
import { attemptsOfJobs, countAttempts, errorsOfAttempts } from '../db/reads/attempts.ts';
import type { BelongingsWindow } from '../db/reads/belongings.ts';
import { checkpointsByKeys, checkpointsOfJobs, countCheckpoints } from '../db/reads/checkpoints.ts';
import { eventsOfJobs } from '../db/reads/events.ts';
import { readCounters } from '../db/reads/job-counts.ts';
import { jobsByIds } from '../db/reads/job-row.ts';
import { jobsOfWorkers } from '../db/reads/jobs.ts';
import { countLogs, type LogRow, logsOfJobs } from '../db/reads/logs.ts';
import { payloadsOfJobs } from '../db/reads/payloads.ts';
import { countRunningOfQueues, oldestQueued, queuesByIds, runningOfQueues } from '../db/reads/queues.ts';
import { schedulesByIds } from '../db/reads/schedules.ts';
import { type TaskRow, tasksByIds, tasksByNames } from '../db/reads/tasks.ts';
import { aheadOfJobs, healthOfJobs, type QueuedReason, queuedReasons } from '../db/reads/waiting.ts';
import { allWorkers, workersByIds } from '../db/reads/workers.ts';
import type { Executor } from '../db/types.ts';
import { byKey, fromMap, groupBy, groups, type LoaderScope, once, pages } from './batching.ts';
import { GRAPH_LOADERS } from './graph-loaders.ts';
import { lazyParts, type Made, type Parts } from './lazy-parts.ts';

/** One job's window of events. */
export interface EventsWindow {
  after: number;
  limit: number;
  fromEnd: boolean;
}

const LOADERS = {
  job: ({ db, tenant }: LoaderScope) =>
    byKey(
      (ids: readonly string[]) => jobsByIds(db, tenant, ids),
      (row: JobRow) => row.id,
      null,
    ),
  worker: ({ db }: LoaderScope) =>
    byKey(
      (ids: readonly string[]) => workersByIds(db, ids),
      (row: WorkerRow) => row.id,
      null,
    ),
  queue: ({ db }: LoaderScope) =>
    byKey(
      (ids: readonly string[]) => queuesByIds(db, ids),
      (row: QueueRow) => row.id,
      null,
    ),
  schedule: ({ db, tenant }: LoaderScope) =>
    byKey(
      (ids: readonly string[]) => schedulesByIds(db, tenant, ids),
      (row: ScheduleRow) => row.id,
      null,
    ),
  taskNamed: ({ db }: LoaderScope) =>
    byKey(
      (names: readonly string[]) => tasksByNames(db, names),
      (row: TaskRow) => row.name,
      null,
    ),
  task: ({ db }: LoaderScope) =>
    byKey(
      (ids: readonly string[]) => tasksByIds(db, ids),
      (row: TaskRow) => row.id,
      null,
    ),
  ...GRAPH_LOADERS,
  input: ({ db, tenant }: LoaderScope) => fromMap((ids) => payloadsOfJobs(db, tenant, 'input', ids), null),
  result: ({ db, tenant }: LoaderScope) => fromMap((ids) => payloadsOfJobs(db, tenant, 'result', ids), null),
  health: ({ db, tenant }: LoaderScope) => fromMap((ids) => healthOfJobs(db, tenant, ids), 'OK'),
  ahead: ({ db, tenant }: LoaderScope) => fromMap((ids) => aheadOfJobs(db, tenant, ids), null),
  queuedReason: ({ db, tenant }: LoaderScope) =>
    byKey(
      (ids: readonly string[]) => queuedReasons(db, tenant, ids),
      (row: QueuedReason) => row.id,
      null,
    ),
  oldestQueued: ({ db, tenant }: LoaderScope) => fromMap((names) => oldestQueued(db, tenant, names), null),
  /** The longest running jobs of a queue. */
  runningInQueue: ({ db, tenant }: LoaderScope) =>
    new DataLoader<{ queue: string; first: number }, JobRow[], string>(
      async (asked) => {
        // A list asks for the same number of each; where aliases do not, all are given the most.
        const limit = Math.max(...asked.map((a) => a.first));
        const names = [...new Set(asked.map((a) => a.queue))];
        const grouped = groupBy(await runningOfQueues(db, tenant, names, limit), (job) => job.queue);
        return asked.map(({ queue, first }) => (grouped.get(queue) ?? []).slice(0, first));
      },
      { cacheKeyFn: ({ queue, first }) => `${first} ${queue}` },
    ),
  runningInQueueCount: ({ db, tenant }: LoaderScope) => fromMap((names) => countRunningOfQueues(db, tenant, names), 0),
  approval: ({ db, tenant }: LoaderScope) =>
    byKey(
      (ids: readonly string[]) => approvalsByIds(db, tenant, ids),
      (row: ApprovalRow) => row.id,
      null,
    ),
  approvalsOf: ({ db, tenant }: LoaderScope) =>
    groups(
      (ids) => approvalsOfJobs(db, tenant, ids),
      (row: ApprovalRow) => row.jobId,
    ),
  decisions: ({ db }: LoaderScope) =>
    groups(
      (ids) => decisionsOf(db, ids),
      (row: DecisionRow) => row.approvalId,
    ),
  attempts: ({ db, tenant }: LoaderScope) =>
    pages((ids, window: BelongingsWindow<number>): Promise<AttemptRow[]> => {
      return attemptsOfJobs(db, tenant, ids, window);
    }),
  attemptCount: ({ db, tenant }: LoaderScope) => fromMap((ids) => countAttempts(db, tenant, ids), 0),
  checkpoints: ({ db, tenant }: LoaderScope) =>
    pages((ids, window: BelongingsWindow<number>): Promise<CheckpointRow[]> => {
      return checkpointsOfJobs(db, tenant, ids, window);
    }),
  checkpointCount: ({ db, tenant }: LoaderScope) => fromMap((ids) => countCheckpoints(db, tenant, ids), 0),
  artifacts: ({ db, tenant }: LoaderScope) =>
    new DataLoader<string, ArtifactRow[]>(async (ids) => {
      const grouped = groupBy(await artifactsOfJobs(db, tenant, ids), (row) => row.jobId);
      return ids.map((id) => grouped.get(id) ?? []);
    }),
  /** An artifact as it is now. */
  artifact: ({ db, tenant }: LoaderScope) =>
    new DataLoader<{ jobId: string; name: string }, ArtifactRow | null, string>(
      async (keys) => {
        const found = new Map((await artifactsByNames(db, tenant, keys)).map((row) => [artifactKey(row), row]));
        return keys.map((k) => found.get(artifactKey(k)) ?? null);
      },
      { cacheKeyFn: artifactKey },
    ),
  logs: ({ db, tenant }: LoaderScope) =>
    pages((ids, window: BelongingsWindow<string>): Promise<LogRow[]> => logsOfJobs(db, tenant, ids, window)),
  logCount: ({ db, tenant }: LoaderScope) => fromMap((ids) => countLogs(db, tenant, ids), 0),
  events: ({ db, tenant }: LoaderScope) =>
    pages((ids, window: EventsWindow): Promise<JobEvent[]> => eventsOfJobs(db, tenant, ids, window)),
  /** The whole error of an attempt. */
  attemptError: ({ db, tenant }: LoaderScope) =>
    new DataLoader<{ jobId: string; number: number }, JobErrorData | null, string>(
      async (attempts) => {
        const rows = await errorsOfAttempts(db, tenant, attempts);
        const found = new Map(rows.map((row) => [attemptKey(row), row.error]));
        return attempts.map((a) => found.get(attemptKey(a)) ?? null);
      },
      { cacheKeyFn: attemptKey },
    ),
  /** A checkpoint as it is now. */
  checkpoint: ({ db, tenant }: LoaderScope) =>
    new DataLoader<{ jobId: string; key: string }, CheckpointRow | null, string>(
      async (keys) => {
        const found = new Map((await checkpointsByKeys(db, tenant, keys)).map((row) => [checkpointKey(row), row]));
        return keys.map((k) => found.get(checkpointKey(k)) ?? null);
      },
      { cacheKeyFn: checkpointKey },
    ),
  runningOf: ({ db, tenant }: LoaderScope) =>
    new DataLoader<string, JobRow[]>(async (workerIds) => {
      const grouped = groupBy(await jobsOfWorkers(db, tenant, workerIds), (job) => job.workerId);
      return workerIds.map((id) => grouped.get(id) ?? []);
    }),
  /** All workers, read once. */
  workers: ({ db }: LoaderScope) => once(() => allWorkers(db)),
  /** All counters of the tenant, read once. */
  counters: ({ db, tenant }: LoaderScope) => once(() => readCounters(db, tenant)),
};

/**
 * Batched reads of one operation: what a thousand jobs of a list ask for is one statement. They remember what they
 * read, so a stream needs new ones for every value that it sends, and a mutation for every field.
 */
export type Loaders = Parts<typeof LOADERS>;

const lazyLoaders = lazyParts(LOADERS);

/** Loaders that have read nothing yet. @param made loaders that are shared with others; default: none are */
export function createLoaders(db: Executor, tenant: string, made?: () => Made): Loaders {
  return lazyLoaders({ db, tenant }, made);
}

function attemptKey(a: { jobId: string; number: number }): string {
  return `${a.jobId} ${a.number}`;
}

function artifactKey(a: { jobId: string; name: string }): string {
  return `${a.jobId} ${a.name}`;
}

function checkpointKey(c: { jobId: string; key: string }): string {
  return `${c.jobId} ${c.key}`;
}
