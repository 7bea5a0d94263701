import type { QueueRow } from '../../core/job.ts';
import { QUEUE_COLUMNS } from '../reads/queues.ts';
import type { Executor } from '../types.ts';

const PAUSE = `
update waymark.queues q
set paused = true,
    paused_at = case when q.paused then q.paused_at else clock_timestamp() end,
    paused_by = case when q.paused and ($3::text is null or $3::text is not distinct from q.pause_reason)
                     then q.paused_by else $2::text end,
    pause_reason = case when q.paused then coalesce($3::text, q.pause_reason) else $3::text end
where q.name = $1
returning ${QUEUE_COLUMNS}`;

/** Pauses a queue; one that is paused takes at most the new reason, with who gave it. Null: there is no such queue. */
export async function pauseQueue(
  db: Executor,
  name: string,
  by: { actor: string; reason: string | null },
): Promise<QueueRow | null> {
  return (await db.query<QueueRow>(PAUSE, [name, by.actor, by.reason]))[0] ?? null;
}

const RESUME = `
update waymark.queues q
set paused = false, paused_at = null, paused_by = null, pause_reason = null
where q.name = $1
returning ${QUEUE_COLUMNS}`;

/** Lets a queue go on. Null: there is no such queue. */
export async function resumeQueue(db: Executor, name: string): Promise<QueueRow | null> {
  return (await db.query<QueueRow>(RESUME, [name]))[0] ?? null;
}

/** Limits as they shall be; what is undefined stays. */
export interface NewLimits {
  maxRunning: number | null | undefined;
  rateLimit: { max: number; perMs: number } | null | undefined;
}

// The starts of a limit that was lifted are of no use, and nobody else would remove them. They are looked for by the
// updated row, so that they are locked behind it, as in a claim.
const SET_LIMITS = `
with u as (
  update waymark.queues q
  set max_running = case when $2::boolean then $3::int else q.max_running end,
      rate_limit_max = case when $4::boolean then $5::int else q.rate_limit_max end,
      rate_limit_per_ms = case when $4::boolean then $6::bigint else q.rate_limit_per_ms end
  where q.name = $1
  returning q.*
),
d as (
  delete from waymark.queue_starts b using u where b.queue = u.name and u.rate_limit_max is null
)
select ${QUEUE_COLUMNS} from u q`;

/** Sets limits of a queue. Null: there is no such queue. */
export async function setQueueLimits(
  db: Executor,
  name: string,
  { maxRunning, rateLimit }: NewLimits,
): Promise<QueueRow | null> {
  const rows = await db.query<QueueRow>(SET_LIMITS, [
    name,
    maxRunning !== undefined,
    maxRunning ?? null,
    rateLimit !== undefined,
    rateLimit?.max ?? null,
    rateLimit?.perMs ?? null,
  ]);
  return rows[0] ?? null;
}

const TASKS_IN_LINE = `
select k.name
from waymark.tasks k
where exists (
  select 1 from waymark.job_states s
  where s.state = 'QUEUED' and not s.blocked and s.queue = $1 and s.task = k.name
)`;

/** Tasks of which jobs are in line in a queue. */
export async function tasksInLine(db: Executor, queue: string): Promise<string[]> {
  return (await db.query<{ name: string }>(TASKS_IN_LINE, [queue])).map((row) => row.name);
}
