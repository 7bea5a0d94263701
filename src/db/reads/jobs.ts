import type { JobRow } from '../../core/job.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { JOB_COLUMNS } from './job-row.ts';

const RUNNING_OF_WORKERS = `
select ${JOB_COLUMNS}
from waymark.jobs j join waymark.job_states s on s.id = j.id
where s.state = 'RUNNING' and s.worker_id = any($2::text::uuid[]) and j.tenant = $1
order by s.id`;

/** RUNNING jobs of the given workers, oldest id first. */
export function jobsOfWorkers(db: Executor, tenant: string, workerIds: readonly string[]): Promise<JobRow[]> {
  return db.query<JobRow>(RUNNING_OF_WORKERS, [tenant, pgArray(workerIds)]);
}
