import { PAST_RETENTION, type RetainMs } from '../reads/families.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { KEYS_ARE_FREE, LOCK_KEYS, REMOVE_BELONGINGS, REMOVE_JOBS } from './prune-parts.ts';

// As with single jobs (`prune.ts`): locked in id order with SKIP LOCKED, judged again under the lock, belongings in the same
// statement and found by arrays. A family of which somebody holds a member, or a key, stays whole until the next pass.
const PRUNE_FAMILIES = `
with t as materialized (select clock_timestamp() as now),
i as materialized (select * from unnest($1::uuid[], $2::uuid[]) as x(root, id) order by x.id),
o as materialized (
  select i.root, s.*, exists (
    select 1 from waymark.idempotency_keys k
    where k.job_id = s.id and k.kind <> 'graph' and k.scope <> 'UNTIL_FINISHED' and k.expires_at > s.now) as keyed
  from i cross join lateral (
    select s.id, s.tenant, s.task, s.queue, s.state, s.pruned_at, t.now from waymark.job_states s, t
    where s.id = i.id and s.finished_at is not null
      and (s.pruned_at is not null or ${PAST_RETENTION('$5', '$6', '$7')})
      and not exists (select 1 from waymark.followups f where f.job_id = s.id)
    for no key update of s skip locked
  ) s
),
${LOCK_KEYS},
w as materialized (
  select i.root from i left join o on o.root = i.root and o.id = i.id
  group by i.root
  having bool_and(o.id is not null and ${KEYS_ARE_FREE})
),
l as materialized (select o.* from o join w on w.root = o.root),
na as materialized (select array(select l.id from l where l.pruned_at is null)::uuid[] as ids),
ga as materialized (select array(select l.id from l where not l.keyed)::uuid[] as ids),
r as materialized (select distinct x.id from unnest($3::uuid[], $4::uuid[]) as x(root, id) join w on w.root = x.root),
rk as materialized (
  select r.id, exists (
    select 1 from waymark.idempotency_keys k where k.job_id = r.id and k.kind = 'graph' and k.expires_at > t.now) as keyed
  from r, t
),
ra as materialized (select array(select rk.id from rk where not rk.keyed)::uuid[] as ids),
${REMOVE_BELONGINGS('na')},
aa as materialized (
  select array(select a.id from waymark.approvals a where a.job_id = any((select ids from na)::uuid[]))::uuid[] as ids
),
x7 as (delete from waymark.approvals a where a.id = any((select ids from aa)::uuid[])),
x8 as (delete from waymark.approval_decisions d where d.approval_id = any((select ids from aa)::uuid[])),
x9 as (
  delete from waymark.job_dependencies d
  where d.job_id = any((select ids from na)::uuid[]) or d.upstream_id = any((select ids from na)::uuid[])
),
${REMOVE_JOBS('ga')},
y4 as (delete from waymark.graph_nodes n where n.graph_id = any((select ids from ra)::uuid[])),
y5 as (delete from waymark.graphs g where g.id = any((select ids from ra)::uuid[])),
y6 as (
  update waymark.graphs g set pruned_at = t.now
  from t where g.id = any(array(select rk.id from rk where rk.keyed)::uuid[]) and g.pruned_at is null
),
b as (
  update waymark.job_states s set pruned_at = t.now, progress = null, version = s.version + 1
  from t where s.id = any(array(select l.id from l where l.keyed and l.pruned_at is null)::uuid[])
),
c as (
  insert into waymark.count_deltas (at, tenant, queue, task, from_state, to_state, n)
  select t.now, l.tenant, l.queue, l.task, l.state, null, count(*) from l, t where l.pruned_at is null
  group by t.now, l.tenant, l.queue, l.task, l.state
)
select cardinality(na.ids) as n from na`;

/** Removes families whole, with their graphs, as far as all members are free. Returns how many jobs went. */
export async function pruneFamilies(
  db: Executor,
  members: readonly { root: string; kind: 'job' | 'graph'; id: string }[],
  retainMs: RetainMs,
): Promise<number> {
  const jobs = members.filter((m) => m.kind === 'job');
  const graphs = members.filter((m) => m.kind === 'graph');
  const [row] = await db.query<{ n: number }>(PRUNE_FAMILIES, [
    pgArray(jobs.map((m) => m.root)),
    pgArray(jobs.map((m) => m.id)),
    pgArray(graphs.map((m) => m.root)),
    pgArray(graphs.map((m) => m.id)),
    retainMs.completed,
    retainMs.failed,
    retainMs.canceled,
  ]);
  return row?.n ?? 0;
}
