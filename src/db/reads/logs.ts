import type { Timestamp } from '../../core/job.ts';
import type { Executor } from '../types.ts';
import { type BelongingsWindow, belongingsSql, countBelongings, windowParams } from './belongings.ts';

export interface LogRow {
  jobId: string;
  id: string;
  at: Timestamp;
  level: string;
  message: string;
  attempt: number;
  data: unknown;
}

const PAGE = belongingsSql({
  table: 'job_logs',
  columns: 'b.job_id as "jobId", b.id, b.at, b.level, b.message, b.attempt, b.data',
  key: 'b.id',
  keyType: 'uuid',
});

/** Log lines of many jobs, in the order in which they were written. */
export function logsOfJobs(
  db: Executor,
  tenant: string,
  jobIds: readonly string[],
  window: BelongingsWindow<string>,
): Promise<LogRow[]> {
  return db.query<LogRow>(PAGE[window.fromEnd ? 'fromEnd' : 'fromStart'], windowParams(tenant, jobIds, window));
}

/** How many log lines each job has. */
export function countLogs(db: Executor, tenant: string, jobIds: readonly string[]): Promise<Map<string, number>> {
  return countBelongings(db, 'job_logs', tenant, jobIds);
}
