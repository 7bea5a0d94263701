import type { DependencyPolicy, JobRow } from '../../core/job.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { type BelongingsWindow, windowParams } from './belongings.ts';
import { JOB_COLUMNS } from './job-row.ts';

/** A job that goes before another (the dependant). Children of handlers are none. */
export interface DependencyRow {
  /** Whose list it is in. */
  jobId: string;
  /** The one at the other end. */
  otherId: string;
  policy: DependencyPolicy;
  satisfied: boolean;
}

// Each step is a probe of an index by LATERAL: a list of ids joined with a young table would be scanned. Jobs of which
// retention left nothing are not listed, and so not counted.
const edges = (own: 'job_id' | 'upstream_id', other: 'job_id' | 'upstream_id') => `
from unnest($2::text::uuid[]) as i(id)
cross join lateral (select j.id, j.tenant from waymark.jobs j where j.id = i.id offset 0) j
cross join lateral (
  select d.${other} as other, d.policy, d.satisfied_at is not null as satisfied, d.position
  from waymark.job_dependencies d
  cross join lateral (select 1 from waymark.job_states s where s.id = d.${other} offset 0) s
  where d.${own} = j.id and d.kind = 'DEPENDENCY' offset 0
) d
where j.tenant = $1`;

const list = (own: 'job_id' | 'upstream_id', other: 'job_id' | 'upstream_id', order: string) => `
select x."jobId", x."otherId", x.policy, x.satisfied
from (
  select j.id as "jobId", d.other as "otherId", d.policy, d.satisfied,
         row_number() over (partition by j.id order by ${order}) as n
  ${edges(own, other)}
) x
where x.n <= $3::int
order by x."jobId", x.n`;
const count = (own: 'job_id' | 'upstream_id', other: 'job_id' | 'upstream_id') =>
  `select j.id, count(*)::int as n ${edges(own, other)} group by j.id`;

const DEPENDENCIES = list('job_id', 'upstream_id', 'd.position, d.other');
const DEPENDENTS = list('upstream_id', 'job_id', 'd.other');
const COUNT_DEPENDENCIES = count('job_id', 'upstream_id');
const COUNT_DEPENDENTS = count('upstream_id', 'job_id');

/** What jobs depend on, in the order in which it was given, at most `first` of each. */
export function dependenciesOfJobs(db: Executor, tenant: string, ids: readonly string[], first: number) {
  return db.query<DependencyRow>(DEPENDENCIES, [tenant, pgArray(ids), first]);
}

/** What depends on jobs, the oldest first, at most `first` of each. */
export function dependentsOfJobs(db: Executor, tenant: string, ids: readonly string[], first: number) {
  return db.query<DependencyRow>(DEPENDENTS, [tenant, pgArray(ids), first]);
}

/** How many jobs each depends on; those without any are left out. */
export function countDependencies(db: Executor, tenant: string, ids: readonly string[]): Promise<Map<string, number>> {
  return counts(db, COUNT_DEPENDENCIES, tenant, ids);
}

/** How many jobs depend on each; those without any are left out. */
export function countDependents(db: Executor, tenant: string, ids: readonly string[]): Promise<Map<string, number>> {
  return counts(db, COUNT_DEPENDENTS, tenant, ids);
}

async function counts(
  db: Executor,
  text: string,
  tenant: string,
  ids: readonly string[],
): Promise<Map<string, number>> {
  const rows = await db.query<{ id: string; n: number }>(text, [tenant, pgArray(ids)]);
  return new Map(rows.map((row) => [row.id, row.n]));
}

const children = (direction: 'asc' | 'desc') => `
select c.*
from unnest($2::text::uuid[]) as i(id)
cross join lateral (
  select ${JOB_COLUMNS}
  from (
    select * from waymark.jobs j
    where j.parent_id = i.id and ($3::uuid is null or j.id > $3::uuid) and ($4::uuid is null or j.id < $4::uuid)
    offset 0
  ) j
  cross join lateral (select * from waymark.job_states s where s.id = j.id offset 0) s
  where j.tenant = $1
  order by j.id ${direction}
  limit $5::int
) c
order by c."parentId", c.id`;
const CHILDREN = { asc: children('asc'), desc: children('desc') };
const COUNT_CHILDREN = `
select i.id, count(*)::int as n
from unnest($2::text::uuid[]) as i(id)
cross join lateral (select j.tenant from waymark.jobs j where j.parent_id = i.id offset 0) j
where j.tenant = $1
group by i.id`;

/** Pages of the jobs that jobs have started, the oldest first. */
export function childrenOfJobs(
  db: Executor,
  tenant: string,
  ids: readonly string[],
  window: BelongingsWindow<string>,
): Promise<JobRow[]> {
  return db.query<JobRow>(CHILDREN[window.fromEnd ? 'desc' : 'asc'], windowParams(tenant, ids, window));
}

/** How many jobs each has started; those without any are left out. */
export function countChildren(db: Executor, tenant: string, ids: readonly string[]): Promise<Map<string, number>> {
  return counts(db, COUNT_CHILDREN, tenant, ids);
}
