import type { QueueRow, Timestamp } from '../../core/job.ts';
import { pgArray, pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';

const COLUMNS = `
  q.id, q.name, q.paused, q.paused_at as "pausedAt", q.paused_by as "pausedBy", q.pause_reason as "pauseReason",
  q.max_running as "maxRunning", q.rate_limit_max as "rateLimitMax", q.rate_limit_per_ms as "rateLimitPerMs"`;

/** All queues by name. A queue exists once a task, a worker or a job has named it. */
export function allQueues(db: Executor): Promise<QueueRow[]> {
  return db.query<QueueRow>(`select ${COLUMNS} from waymark.queues q order by q.name`);
}

/** Queues by name. */
export function queuesByNames(db: Executor, names: readonly string[]): Promise<QueueRow[]> {
  return db.query<QueueRow>(`select ${COLUMNS} from waymark.queues q where q.name = any($1::text::text[])`, [
    pgTextArray(names),
  ]);
}

/** Queues by stored id. */
export function queuesByIds(db: Executor, ids: readonly string[]): Promise<QueueRow[]> {
  return db.query<QueueRow>(`select ${COLUMNS} from waymark.queues q where q.id = any($1::text::uuid[])`, [
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
