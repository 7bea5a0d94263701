import type { TERMINAL_STATES } from '../../core/state.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

/** How long finished jobs are kept, in milliseconds. */
export interface RetainMs {
  completed: number;
  failed: number;
  canceled: number;
}

/** The terminal states, each with the setting that says how long it is kept. */
export const RETAINED = [
  ['COMPLETED', 'completed'],
  ['FAILED', 'failed'],
  ['CANCELED', 'canceled'],
] as const satisfies readonly (readonly [(typeof TERMINAL_STATES)[number], keyof RetainMs])[];

/** Whether a finished row of `s` is past its retention; expects `t(now)`. Parameters: completed, failed, canceled. */
export const PAST_RETENTION = (completed: string, failed: string, canceled: string) => `
s.finished_at < t.now - (case s.state when 'COMPLETED' then ${completed}::bigint when 'FAILED' then ${failed}::bigint
                         else ${canceled}::bigint end) * interval '1 millisecond'`;

/** A finished job with relatives, past its retention. */
export interface FamilyCandidate {
  id: string;
  finishedAt: string;
  /** The same for jobs that are certainly of one family. */
  family: string;
}

const candidates = (state: string) => `
select s.id, s.finished_at as "finishedAt", coalesce(j.graph_id, j.parent_id, j.id) as family
from waymark.job_states s
cross join lateral (select j.id, j.graph_id, j.parent_id from waymark.jobs j where j.id = s.id offset 0) j
where s.state = '${state}' and s.finished_at is not null and s.pruned_at is null
  and s.finished_at < (select clock_timestamp() - $1::bigint * interval '1 millisecond')
  and (s.followed or s.depends) and (s.finished_at, s.id) > ($2::text::timestamptz, $3::uuid)
order by s.finished_at, s.id
limit $4::int`;
const CANDIDATES = {
  COMPLETED: candidates('COMPLETED'),
  FAILED: candidates('FAILED'),
  CANCELED: candidates('CANCELED'),
};

/** Finished jobs with relatives that are past their retention, behind `after`, the longest finished first. */
export function familyCandidates(
  db: Executor,
  state: keyof typeof CANDIDATES,
  olderThanMs: number,
  after: { finishedAt: string; id: string },
  limit: number,
): Promise<FamilyCandidate[]> {
  return db.query<FamilyCandidate>(CANDIDATES[state], [olderThanMs, after.finishedAt, after.id, limit]);
}

// A family is what hangs together by parents and by graphs; a graph is a member of its own, so that each of a thousand nodes
// does not look for all others. What depends on a family from outside keeps it until it is old enough, too,
// and so does a graph of which a node is one of its jobs by its key.
const FAMILIES = `
with recursive t as materialized (select clock_timestamp() as now),
u(root, kind, id) as (
  select x.id, 'job', x.id from unnest($1::uuid[]) as x(id)
  union
  select u.root, x.kind, x.id from u cross join lateral (
    select 'job' as kind, j.parent_id as id from waymark.jobs j
    where u.kind = 'job' and j.id = u.id and j.parent_id is not null
    union all
    select 'graph', j.graph_id from waymark.jobs j where u.kind = 'job' and j.id = u.id and j.graph_id is not null
    union all
    select 'job', j.id from waymark.jobs j where u.kind = 'job' and j.parent_id = u.id
    union all
    select 'job', j.id from waymark.jobs j where u.kind = 'graph' and j.graph_id = u.id
  ) x
),
m as materialized (
  select u.root, s.id, s.finished_at is not null and (s.pruned_at is not null or ${PAST_RETENTION('$2', '$3', '$4')})
         and not exists (select 1 from waymark.followups f where f.job_id = s.id) as past
  from u cross join lateral (
    select s.id, s.state, s.finished_at, s.pruned_at from waymark.job_states s where s.id = u.id offset 0) s, t
  where u.kind = 'job'
),
outside as materialized (
  select m.root, d.job_id
  from m cross join lateral (
    select d.job_id from waymark.job_dependencies d where d.upstream_id = m.id offset 0) d
  where not exists (select 1 from m o where o.root = m.root and o.id = d.job_id)
  union all
  select m.root, j.id
  from m cross join lateral (
    select n.graph_id from waymark.graph_nodes n where n.job_id = m.id and n.deduplicated offset 0) n
  cross join lateral (select j.id from waymark.jobs j where j.graph_id = n.graph_id offset 0) j
),
kept as materialized (
  select m.root from m where not m.past
  union
  select o.root from outside o cross join lateral (
    select s.state, s.finished_at from waymark.job_states s where s.id = o.job_id offset 0) s, t
  where s.finished_at is null or not ${PAST_RETENTION('$2', '$3', '$4')}
)
select u.root, u.kind, u.id from u
where not exists (select 1 from kept k where k.root = u.root)
  and (u.kind = 'graph' or exists (select 1 from m where m.root = u.root and m.id = u.id))`;

/** Whole families of these jobs of which every member, and whatever depends on one, is past its retention. */
export async function prunableFamilies(
  db: Executor,
  roots: readonly string[],
  retainMs: RetainMs,
): Promise<{ root: string; kind: 'job' | 'graph'; id: string }[]> {
  const { completed, failed, canceled } = retainMs;
  return db.query(FAMILIES, [pgArray(roots), completed, failed, canceled]);
}
