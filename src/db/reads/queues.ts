import type { JobRow, QueueRow, Timestamp } from '../../core/job.ts';
import { pgArray, pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { JOB_COLUMNS } from './job-row.ts';

/** The select list of a QueueRow over `waymark.queues q`. */
export const QUEUE_COLUMNS = `
  q.id, q.name, q.paused, q.paused_at as "pausedAt", q.paused_by as "pausedBy", q.pause_reason as "pauseReason",
  q.max_running as "maxRunning", q.rate_limit_max as "rateLimitMax", q.rate_limit_per_ms as "rateLimitPerMs"`;

/** All queues by name. A queue exists once a task, a worker or a job has named it. */
export function allQueues(db: Executor): Promise<QueueRow[]> {
  return db.query<QueueRow>(`select ${QUEUE_COLUMNS} from waymark.queues q order by q.name`);
}

/** Queues by name. */
export function queuesByNames(db: Executor, names: readonly string[]): Promise<QueueRow[]> {
  return db.query<QueueRow>(`select ${QUEUE_COLUMNS} from waymark.queues q where q.name = any($1::text::text[])`, [
    pgTextArray(names),
  ]);
}

/** Queues by stored id. */
export function queuesByIds(db: Executor, ids: readonly string[]): Promise<QueueRow[]> {
  return db.query<QueueRow>(`select ${QUEUE_COLUMNS} from waymark.queues q where q.id = any($1::text::uuid[])`, [
    pgArray(ids),
  ]);
}

const OLDEST = `
select s.queue, min(s.queued_at) as at
from waymark.job_states s
where s.state = 'QUEUED' and not s.blocked and s.tenant = $1 and s.queue = any($2::text::text[])
group by s.queue`;

/** Since when the longest waiting job of each queue is in line; queues with nothing in line are left out. */
export async function oldestQueued(
  db: Executor,
  tenant: string,
  names: readonly string[],
): Promise<Map<string, Timestamp>> {
  const rows = await db.query<{ queue: string; at: Timestamp }>(OLDEST, [tenant, pgTextArray(names)]);
  return new Map(rows.map((r) => [r.queue, r.at]));
}

const RUNNING = `
select h.*
from unnest($2::text::text[]) as i(name)
cross join lateral (
  select ${JOB_COLUMNS}
  from waymark.job_states s join waymark.jobs j on j.id = s.id
  where s.state = 'RUNNING' and s.queue = i.name and s.tenant = $1
  order by s.attempt_started_at, s.id
  limit $3::int
) h`;

/** The jobs that run in each queue, the longest running first, at most `limit` of each. */
export function runningOfQueues(
  db: Executor,
  tenant: string,
  names: readonly string[],
  limit: number,
): Promise<JobRow[]> {
  return db.query<JobRow>(RUNNING, [tenant, pgTextArray(names), limit]);
}

const COUNT_RUNNING = `
select s.queue, count(*)::int as n
from waymark.job_states s
where s.state = 'RUNNING' and s.queue = any($2::text::text[]) and s.tenant = $1
group by s.queue`;

/** How many jobs run in each queue; queues where none does are left out. */
export async function countRunningOfQueues(
  db: Executor,
  tenant: string,
  names: readonly string[],
): Promise<Map<string, number>> {
  const rows = await db.query<{ queue: string; n: number }>(COUNT_RUNNING, [tenant, pgTextArray(names)]);
  return new Map(rows.map((r) => [r.queue, r.n]));
}
