import { pgArray } from '../sql.ts';
import type { Executor, SqlParam } from '../types.ts';

/**
 * Pages of what belongs to jobs (attempts, checkpoints, log lines), for many jobs in one statement. All jobs of a batch
 * share one window; keys are unique within a job.
 */
export interface BelongingsWindow<Key extends string | number> {
  /** Exclusive bounds; null: none. */
  after: Key | null;
  before: Key | null;
  /** Take the last `limit` of the window, not the first. They come in ascending order all the same. */
  fromEnd: boolean;
  limit: number;
}

interface Belongings {
  table: 'attempts' | 'checkpoints' | 'job_logs';
  /** Select list over the alias `b`. */
  columns: string;
  key: string;
  keyType: 'int' | 'uuid';
  /** Further condition over `b`, `j` (jobs) and `s` (job_states). */
  where?: string;
}

/** The page statement in both directions. The tenant is checked by the join, whatever the ids. */
export function belongingsSql(of: Belongings): { fromStart: string; fromEnd: string } {
  const sql = (direction: 'asc' | 'desc') => `
select p.*
from unnest($2::text::uuid[]) as x(id)
join waymark.jobs j on j.id = x.id and j.tenant = $1
join waymark.job_states s on s.id = j.id
cross join lateral (
  select ${of.columns}, ${of.key} as "pageKey"
  from waymark.${of.table} b
  where b.job_id = j.id ${of.where ? `and ${of.where}` : ''}
    and ($3::${of.keyType} is null or ${of.key} > $3::${of.keyType})
    and ($4::${of.keyType} is null or ${of.key} < $4::${of.keyType})
  order by ${of.key} ${direction}
  limit $5::int
) p
order by p."jobId", p."pageKey"`;
  return { fromStart: sql('asc'), fromEnd: sql('desc') };
}

/** The parameters of a page statement. */
export function windowParams(
  tenant: string,
  jobIds: readonly string[],
  window: BelongingsWindow<string | number>,
): SqlParam[] {
  return [tenant, pgArray(jobIds), window.after, window.before, window.limit];
}

const COUNT = (table: Belongings['table'], where: string) => `
select b.job_id as id, count(*) as n
from waymark.${table} b
join waymark.jobs j on j.id = b.job_id and j.tenant = $1
join waymark.job_states s on s.id = j.id
where b.job_id = any($2::text::uuid[]) ${where}
group by b.job_id`;

const COUNTS = {
  attempts: COUNT('attempts', ''),
  checkpoints: COUNT('checkpoints', 'and b.epoch = s.epoch'),
  job_logs: COUNT('job_logs', ''),
};

/** How many belongings of a kind each job has; jobs without any are left out. */
export async function countBelongings(
  db: Executor,
  table: Belongings['table'],
  tenant: string,
  jobIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await db.query<{ id: string; n: number }>(COUNTS[table], [tenant, pgArray(jobIds)]);
  return new Map(rows.map((r) => [r.id, r.n]));
}
