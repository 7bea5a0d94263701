import type { JobErrorData } from '../../core/event.ts';
import type { AttemptRow } from '../../core/job.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { type BelongingsWindow, belongingsSql, countBelongings, windowParams } from './belongings.ts';

const COLUMNS = `
  b.job_id as "jobId", b.number, b.run, b.outcome, b.error, b.worker_id as "workerId", b.started_at as "startedAt",
  coalesce(b.finished_at, (select w.heartbeat_at from waymark.workers w where w.id = b.worker_id), b.started_at)
    as "heartbeatAt",
  b.finished_at as "finishedAt", b.resumed_from as "resumedFrom"`;

const PAGE = belongingsSql({ table: 'attempts', columns: COLUMNS, key: 'b.number', keyType: 'int' });

/** Attempts of many jobs, per job in the window's order. A running attempt's heartbeat is its worker's. */
export function attemptsOfJobs(
  db: Executor,
  tenant: string,
  jobIds: readonly string[],
  window: BelongingsWindow<number>,
): Promise<AttemptRow[]> {
  return db.query<AttemptRow>(PAGE[window.fromEnd ? 'fromEnd' : 'fromStart'], windowParams(tenant, jobIds, window));
}

/** How many attempts each job has. */
export function countAttempts(db: Executor, tenant: string, jobIds: readonly string[]): Promise<Map<string, number>> {
  return countBelongings(db, 'attempts', tenant, jobIds);
}

const ERRORS = `
select a.job_id as "jobId", a.number, a.error
from unnest($2::text::uuid[], $3::text::int[]) as x(id, number)
join waymark.attempts a on a.job_id = x.id and a.number = x.number
join waymark.jobs j on j.id = a.job_id and j.tenant = $1
where a.error is not null`;

/** Errors of single attempts, complete with their stacks (events and jobs keep them without). */
export function errorsOfAttempts(
  db: Executor,
  tenant: string,
  attempts: readonly { jobId: string; number: number }[],
): Promise<{ jobId: string; number: number; error: JobErrorData }[]> {
  return db.query(ERRORS, [tenant, pgArray(attempts.map((a) => a.jobId)), pgArray(attempts.map((a) => a.number))]);
}
