import type { Timestamp } from '../../core/job.ts';
import { nextStart } from '../queue-limits.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { HEALTH, WAITING } from './job-conditions.ts';

const HEALTH_BY_IDS = `
select j.id, ${HEALTH} as health
from waymark.jobs j join waymark.job_states s on s.id = j.id
where j.id = any($2::text::uuid[]) and j.tenant = $1`;

/** How jobs are doing, judged by the database's clock. */
export async function healthOfJobs(db: Executor, tenant: string, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.query<{ id: string; health: string }>(HEALTH_BY_IDS, [tenant, pgArray(ids)]);
  return new Map(rows.map((r) => [r.id, r.health]));
}

/** Why a QUEUED job has not started. */
export interface QueuedReason {
  id: string;
  kind: string;
  pausedBy: string | null;
  pauseReason: string | null;
  maxRunning: number | null;
  rateLimitMax: number | null;
  rateLimitPerMs: number | null;
  /** RATE_LIMIT: when the next start is free. */
  nextStart: Timestamp | null;
}

const QUEUED_REASONS = `
select j.id, ${WAITING} as kind, q.paused_by as "pausedBy", q.pause_reason as "pauseReason",
       q.max_running as "maxRunning", q.rate_limit_max as "rateLimitMax", q.rate_limit_per_ms as "rateLimitPerMs",
       case when q.rate_limit_max is not null then ${nextStart('statement_timestamp()')} end as "nextStart"
from waymark.jobs j join waymark.job_states s on s.id = j.id left join waymark.queues q on q.name = s.queue
where j.id = any($2::text::uuid[]) and j.tenant = $1 and s.state = 'QUEUED'`;

/** Why jobs that are QUEUED wait; those that are not any more are left out. */
export function queuedReasons(db: Executor, tenant: string, ids: readonly string[]): Promise<QueuedReason[]> {
  return db.query<QueuedReason>(QUEUED_REASONS, [tenant, pgArray(ids)]);
}

/** Jobs in front of a queued job are counted up to here. */
export const MAX_AHEAD = 1_000;

// By task, since the claim index is ordered only within (queue, task): nothing but what is counted is read. Whose jobs
// they are does not matter, the line is the deployment's.
const AHEAD = `
select s.id, least(sum(n.n), ${MAX_AHEAD})::int as ahead
from waymark.job_states s
join waymark.jobs j on j.id = s.id and j.tenant = $1
cross join waymark.tasks t
cross join lateral (
  select count(*) as n from (
    select 1 from waymark.job_states o
    where o.state = 'QUEUED' and not o.blocked and o.queue = s.queue and o.task = t.name and (o.rank, o.id) < (s.rank, s.id)
    limit ${MAX_AHEAD}
  ) x
) n
where s.id = any($2::text::uuid[]) and s.state = 'QUEUED' and not s.blocked
group by s.id`;

/** How many jobs are in line before each of these, up to `MAX_AHEAD`. */
export async function aheadOfJobs(db: Executor, tenant: string, ids: readonly string[]): Promise<Map<string, number>> {
  const rows = await db.query<{ id: string; ahead: number }>(AHEAD, [tenant, pgArray(ids)]);
  return new Map(rows.map((r) => [r.id, r.ahead]));
}
