import { PAST_RETENTION, type RetainMs } from '../reads/families.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

// As with single jobs (`prune.ts`): locked in id order with SKIP LOCKED, judged again under the lock, belongings in the same
// statement. A family of which somebody holds a member, or a key, stays whole until the next pass.
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
k as materialized (
  select k.job_id from o join waymark.idempotency_keys k on k.job_id = o.id
  where not o.keyed
  for update of k skip locked
),
w as materialized (
  select i.root from i left join o on o.root = i.root and o.id = i.id
  group by i.root
  having bool_and(o.id is not null and (o.keyed or o.id in (select k.job_id from k)
    or not exists (select 1 from waymark.idempotency_keys x where x.job_id = o.id)))
),
l as materialized (select o.* from o join w on w.root = o.root),
n as materialized (select l.id from l where l.pruned_at is null),
g as materialized (select l.id from l where not l.keyed),
r as materialized (select distinct x.id from unnest($3::uuid[], $4::uuid[]) as x(root, id) join w on w.root = x.root),
rk as materialized (
  select r.id, exists (
    select 1 from waymark.idempotency_keys k where k.job_id = r.id and k.kind = 'graph' and k.expires_at > t.now) as keyed
  from r, t
),
x1 as (delete from waymark.payloads p using n where p.job_id = n.id),
x2 as (delete from waymark.ended_attempts a using n where a.job_id = n.id),
x3 as (delete from waymark.checkpoints c using n where c.job_id = n.id),
x4 as (delete from waymark.events e using n where e.job_id = n.id),
x5 as (delete from waymark.job_logs o using n where o.job_id = n.id),
x6 as (delete from waymark.artifacts a using n where a.job_id = n.id),
x7 as (delete from waymark.approvals a using n where a.job_id = n.id returning a.id),
x8 as (delete from waymark.approval_decisions d using x7 where d.approval_id = x7.id),
x9 as (
  delete from waymark.job_dependencies d
  where d.job_id in (select n.id from n) or d.upstream_id in (select n.id from n)
),
y1 as (delete from waymark.idempotency_keys k using g where k.job_id = g.id),
y2 as (delete from waymark.jobs j using g where j.id = g.id),
y3 as (delete from waymark.job_states s using g where s.id = g.id),
y4 as (delete from waymark.graph_nodes n using rk where n.graph_id = rk.id and not rk.keyed),
y5 as (delete from waymark.graphs g using rk where g.id = rk.id and not rk.keyed),
y6 as (update waymark.graphs g set pruned_at = t.now from rk, t where g.id = rk.id and rk.keyed and g.pruned_at is null),
b as (
  update waymark.job_states s set pruned_at = t.now, progress = null, version = s.version + 1
  from l, t where s.id = l.id and l.keyed and l.pruned_at is null
),
c as (
  insert into waymark.count_deltas (at, tenant, queue, task, from_state, to_state, n)
  select t.now, l.tenant, l.queue, l.task, l.state, null, count(*) from l, t where l.pruned_at is null
  group by t.now, l.tenant, l.queue, l.task, l.state
)
select count(*)::int as n from n`;

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
