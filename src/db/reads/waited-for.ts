import { pgArray, pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';

/** What a DEFERRED job waits for, by kind of the edges. */
export interface WaitedForRow {
  id: string;
  kind: 'DEPENDENCY' | 'CHILD';
  /** Those that are not finished. */
  open: number;
  total: number;
}

const OPEN_COUNTS = `
select d.job_id as id, d.kind, count(*) filter (where d.satisfied_at is null and s.open)::int as open,
       count(*)::int as total
from unnest($2::text::uuid[]) as i(id)
cross join lateral (select j.id, j.tenant from waymark.jobs j where j.id = i.id offset 0) j
cross join lateral (
  select d.job_id, d.upstream_id, d.kind, d.satisfied_at
  from waymark.job_dependencies d where d.job_id = j.id offset 0) d
left join lateral (select s.finished_at is null as open from waymark.job_states s where s.id = d.upstream_id offset 0) s
  on true
where j.tenant = $1
group by d.job_id, d.kind`;

/** How many jobs each waits for, and of how many. */
export function openCounts(db: Executor, tenant: string, ids: readonly string[]): Promise<WaitedForRow[]> {
  return db.query<WaitedForRow>(OPEN_COUNTS, [tenant, pgArray(ids)]);
}

const OPEN_JOBS = `
select x.id, x.kind, x.upstream
from (
  select d.job_id as id, d.kind, d.upstream_id as upstream,
         row_number() over (partition by d.job_id, d.kind order by d.position, d.upstream_id) as n
  from unnest($2::text::uuid[]) as i(id)
  cross join lateral (select j.id, j.tenant from waymark.jobs j where j.id = i.id offset 0) j
  cross join lateral (
    select d.job_id, d.upstream_id, d.kind, d.position
    from waymark.job_dependencies d where d.job_id = j.id and d.satisfied_at is null offset 0) d
  cross join lateral (
    select 1 from waymark.job_states s where s.id = d.upstream_id and s.finished_at is null offset 0) s
  where j.tenant = $1
) x
where x.n <= $3::int
order by x.id, x.n`;

/** The unfinished jobs that jobs wait for, in the order in which they were given, at most `first` of each kind. */
export function openUpstreams(
  db: Executor,
  tenant: string,
  ids: readonly string[],
  first: number,
): Promise<{ id: string; kind: WaitedForRow['kind']; upstream: string }[]> {
  return db.query(OPEN_JOBS, [tenant, pgArray(ids), first]);
}

const HEADS = `
select k.key, k.head_job_id as "jobId" from waymark.concurrency_keys k
where k.tenant = $1 and k.key = any($2::text::text[])`;

/** The first job of each concurrency key, behind which the others wait; keys without one are left out. */
export function headsOfKeys(
  db: Executor,
  tenant: string,
  keys: readonly string[],
): Promise<{ key: string; jobId: string }[]> {
  return db.query(HEADS, [tenant, pgTextArray(keys)]);
}
