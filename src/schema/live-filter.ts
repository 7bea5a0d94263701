import { publicId } from '../core/ids.ts';
import type { JobRow } from '../core/job.ts';
import { isTerminal, JOB_STATES, type JobState } from '../core/state.ts';
import { type JobFilter, namesJobs } from '../db/reads/job-filter.ts';
import type { ChangeFilter } from '../engine/live/types.ts';

/**
 * A job filter for streams of changes. What can change with a job (its state, and what goes with the state) lets a job
 * through when it matched before or matches now: a list that shows the job must learn that it left.
 */
export function liveFilter(filter: JobFilter): ChangeFilter {
  const states = possibleStates(filter);
  return {
    change: (change) =>
      isOneOf(filter.ids, change.jobId) && isOneOf(filter.tasks, change.task) && isOneOf(filter.queues, change.queue),
    state: (state) => states.has(state),
    row: (row) => rowMatches(filter, row),
  };
}

function isOneOf<T>(values: readonly T[] | null | undefined, value: T): boolean {
  return values == null || values.includes(value);
}

/** States in which each kind of waiting is possible; those left out are not yet. */
const STATES_OF_WAITING: Readonly<Record<string, JobState>> = {
  DEPENDENCIES: 'DEFERRED',
  CHILDREN: 'DEFERRED',
  DUE_TIME: 'SCHEDULED',
  SLEEP: 'SCHEDULED',
  RETRY_DELAY: 'RETRYING',
  REVIEW: 'WAITING_FOR_REVIEW',
};

/** States in which a job can match. */
function possibleStates(filter: JobFilter): ReadonlySet<JobState> {
  const { states, health, waitingKinds, errorCodes, workerId, finishedAfter, finishedBefore } = filter;
  const waiting = waitingKinds?.map((kind) => STATES_OF_WAITING[kind] ?? 'QUEUED');
  return new Set(
    JOB_STATES.filter(
      (s) =>
        isOneOf(states, s) &&
        (health == null || (health.length > 0 && (s === 'RUNNING' || health.includes('OK')))) &&
        isOneOf(waiting, s) &&
        (errorCodes == null || s === 'RETRYING' || s === 'FAILED') &&
        (workerId == null || s === 'RUNNING') &&
        ((finishedAfter ?? finishedBefore) == null || isTerminal(s)),
    ),
  );
}

/** What is left. Of what comes and goes with a state, "none now" may have matched before. */
function rowMatches(filter: JobFilter, row: JobRow): boolean {
  const same = <T>(wanted: T | null | undefined, actual: T) => wanted == null || wanted === actual;
  const code = row.error?.code ?? null;
  return (
    (filter.tags == null || (filter.tags.length > 0 && filter.tags.every((tag) => row.tags.includes(tag)))) &&
    same(filter.graphId, row.graphId) &&
    same(filter.parentId, row.parentId) &&
    same(filter.scheduleId, row.scheduleId) &&
    same(filter.idempotencyKey, row.idempotencyKey) &&
    same(filter.submittedBy, row.submittedBy) &&
    (row.workerId === null || same(filter.workerId, row.workerId)) &&
    (filter.errorCodes == null ||
      (filter.errorCodes.length > 0 && (code === null || filter.errorCodes.includes(code)))) &&
    isWithin(row.createdAt, filter.createdAfter, filter.createdBefore) &&
    (row.finishedAt === null || isWithin(row.finishedAt, filter.finishedAfter, filter.finishedBefore)) &&
    (filter.text == null || textMatches(filter.text, row)) &&
    (row.prunedAt === null || namesJobs(filter))
  );
}

/** A stored moment against bounds with milliseconds: what the store keeps beyond these does not move it over a bound. */
function isWithin(at: string, after: string | null | undefined, before: string | null | undefined): boolean {
  const instant = Date.parse(`${at.replace(' ', 'T').replace(/\+00$/, '')}Z`);
  return (after == null || instant >= Date.parse(after)) && (before == null || instant < Date.parse(before));
}

function textMatches(text: string, row: JobRow): boolean {
  const prefix = text.toLowerCase();
  return [publicId('Job', row.id), row.title ?? row.task, row.idempotencyKey ?? ''].some(
    (value, i) => (i < 2 || row.idempotencyKey !== null) && value.toLowerCase().startsWith(prefix),
  );
}
