import { FULL, LIMITED, nextStart, room } from '../queue-limits.ts';
import { pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';

/** Names of the queues that have a limit. */
export async function limitedQueues(db: Executor): Promise<string[]> {
  const rows = await db.query<{ name: string }>(`select q.name from waymark.queues q where ${LIMITED} order by q.name`);
  return rows.map((row) => row.name);
}

/** A queue with a limit in which jobs wait. */
export interface LimitedLine {
  name: string;
  /** How many of them may start now; not above 0: none. */
  room: number;
  /** It runs as many as it may. */
  full: boolean;
  /** When its rate limit allows the next start, in milliseconds from now; null: now. */
  nextStartMs: number | null;
}

// The best jobs that a worker with n slots may get are in the n queues whose first jobs are the best.
const LINES = `
with t as materialized (select clock_timestamp() as now)
select q.name, ${room('(select now from t)')} as room, ${FULL} as full,
       (extract(epoch from ${nextStart('(select now from t)')} - (select now from t)) * 1000)::float8 as "nextStartMs"
from waymark.queues q
cross join lateral (
  select x.rank, x.id
  from unnest($2::text[]) as k(task), lateral (
    select s.rank, s.id from waymark.job_states s
    where s.state = 'QUEUED' and not s.blocked and s.queue = q.name and s.task = k.task
    order by s.rank, s.id
    limit 1
  ) x
  order by x.rank, x.id
  limit 1
) head
where q.name = any($1::text[]) and not q.paused and ${LIMITED}
order by head.rank, head.id`;

/**
 * Of the given queues those with a limit in which jobs of the tasks wait, the one whose first job has waited longest
 * first (by rank). Locks nothing: what is free may be taken by others until it is claimed.
 */
export function limitedLines(db: Executor, names: readonly string[], tasks: readonly string[]): Promise<LimitedLine[]> {
  return db.query<LimitedLine>(LINES, [pgTextArray(names), pgTextArray(tasks)]);
}
