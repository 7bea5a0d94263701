import type { JobEvent } from '../../core/event.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

const SQL = (direction: 'asc' | 'desc') => `
select p.*
from unnest($2::text::uuid[]) as x(id)
join waymark.jobs j on j.id = x.id and j.tenant = $1
cross join lateral (
  select e.job_id as "jobId", e.seq, e.at, e.type, e.run, e.attempt, e.actor, e.state,
         coalesce(e.data, '{}'::json) as data
  from waymark.events e
  where e.job_id = j.id and e.seq > $3::int
  order by e.seq ${direction}
  limit $4::int
) p
order by p."jobId", p.seq`;

const FIRST = SQL('asc');
const LAST = SQL('desc');

/** Events of many jobs behind `after`, per job by seq ascending: the first `limit`, or the last with `fromEnd`. */
export function eventsOfJobs(
  db: Executor,
  tenant: string,
  jobIds: readonly string[],
  window: { after: number; limit: number; fromEnd?: boolean },
): Promise<JobEvent[]> {
  return db.query<JobEvent>(window.fromEnd ? LAST : FIRST, [tenant, pgArray(jobIds), window.after, window.limit]);
}
