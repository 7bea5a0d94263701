import { type ChangeRow, COUNT_DELTAS, MOVED, SELECT_FOLLOWED, WRITE_EVENTS } from '../changes.ts';
import { HAS_ITS_KEY, takeKeysBack } from '../key-rules.ts';
import { pgArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';

const RETRY_FROM = `'COMPLETED', 'FAILED', 'CANCELED', 'SCHEDULED', 'RETRYING'`;

// `l` holds the jobs that were asked for (`root`) and those of their children, at any depth, that did not complete: they run
// again with them.
// Children are found by the checkpoints of their parents: what a retry drops is submitted anew, and not run again.
const RETRY = `
with recursive t as materialized (select clock_timestamp() as now),
f(id, root) as (
  select r, true from unnest($9::uuid[]) as r where $10::boolean and not $5::boolean
  union
  select s.id, false
  from f cross join lateral (
    select p.id, p.epoch from waymark.job_states p where p.id = f.id and p.finished_at is not null and p.depends offset 0) p
  cross join lateral (
    select c.data, c.sequence from waymark.checkpoints c
    where c.job_id = p.id and c.epoch = p.epoch and c.kind = 'CHILDREN' offset 0) c
  left join lateral (
    select x.sequence from waymark.checkpoints x
    where f.root and x.job_id = p.id and x.epoch = p.epoch and x.key = $6::text offset 0) x on true
  cross join lateral json_array_elements_text(c.data -> 'jobs') as e
  cross join lateral (
    select s.id from waymark.job_states s where s.id = e::uuid and s.state in ('FAILED', 'CANCELED') offset 0) s
  where x.sequence is null or c.sequence < x.sequence
),
i as materialized (
  select x.id from (select unnest($1::uuid[]) as id union select f.id from f) x order by x.id
),
o as materialized (
  select s.* from i cross join lateral (
    select s.id, s.tenant, s.task, s.state, s.epoch, s.run, s.changed_at, s.finished_at, s.concurrency_key, s.depends, s.followed,
           s.id = any($9::uuid[]) as root
    from waymark.job_states s
    where s.id = i.id and s.tenant = $2 and s.pruned_at is null
      and case when s.id = any($9::uuid[]) then s.state in (${RETRY_FROM}) and ($4::int is null or s.run = $4)
               else s.state in ('FAILED', 'CANCELED') end
    for no key update
  ) s
),
${takeKeysBack('o')},
l as materialized (
  select o.*, o.finished_at is not null as finished, greatest(t.now, o.changed_at) as at, j.priority,
         case when o.root then x.sequence end as from_sequence, o.root and $5::boolean as from_start,
         o.depends and o.finished_at is not null and exists (
           select 1 from waymark.job_dependencies d cross join lateral (
             select u.id, u.finished_at from waymark.job_states u where u.id = d.upstream_id offset 0) u
           where d.job_id = o.id and d.kind = 'DEPENDENCY' and d.satisfied_at is null
             and (u.finished_at is null or u.id in (select b.id from o as b))
           offset 0
         ) as held
  from o cross join lateral (select j.priority from waymark.jobs j where j.id = o.id offset 0) j
  left join lateral (
    select x.sequence from waymark.checkpoints x
    where x.job_id = o.id and x.epoch = o.epoch and x.key = $6::text offset 0) x on true, t
  where ${HAS_ITS_KEY} and exists (
    select 1 from o r where r.root and ($6::text is null or exists (
      select 1 from waymark.checkpoints c where c.job_id = r.id and c.epoch = r.epoch and c.key = $6::text offset 0)))
),
la as materialized (select array(select l.id from l)::uuid[] as ids),
x as (
  delete from waymark.checkpoints c using l
  where c.job_id = l.id and c.job_id = any((select ids from la)::uuid[]) and (
    l.from_start or c.sequence >= l.from_sequence
    or l.finished and c.kind = 'APPROVAL' and exists (
      select 1 from waymark.approvals a
      where a.job_id = c.job_id and a.epoch = c.epoch and a.key = c.key and not a.superseded and a.state <> 'APPROVED'
      offset 0)
  )
  returning c.job_id, c.epoch, c.key, c.kind, c.data
),
a as (
  update waymark.approvals a
  set superseded = true, version = a.version + 1,
      state = case a.state when 'OPEN' then 'WITHDRAWN' else a.state end, decided_at = coalesce(a.decided_at, t.now)
  from l, t
  where a.job_id = l.id and a.job_id = any((select ids from la)::uuid[]) and not a.superseded and (
    l.finished and a.state <> 'APPROVED' or l.from_start
    or exists (
      select 1 from waymark.checkpoints c
      where c.job_id = l.id and c.epoch = a.epoch and c.key = a.key and c.sequence >= l.from_sequence)
  )
),
b as (
  update waymark.checkpoints c set data = (c.data::jsonb - 'seen')::json
  from l
  where c.job_id = l.id and c.job_id = any((select ids from la)::uuid[]) and l.finished and c.epoch = l.epoch
    and c.kind = 'CHILDREN' and c.data -> 'seen' is not null
    and not coalesce(l.from_start or c.sequence >= l.from_sequence, false)
),
d1 as (
  delete from waymark.job_dependencies d using l
  where d.job_id = l.id and d.job_id = any((select ids from la)::uuid[]) and d.kind = 'CHILD' and l.from_start
),
d2 as (
  delete from waymark.job_dependencies d using x
  where x.kind = 'CHILDREN' and d.job_id = x.job_id and d.job_id = any((select ids from la)::uuid[])
    and d.kind = 'CHILD'
    and d.upstream_id in (select e::uuid from json_array_elements_text(x.data -> 'jobs') as e)
),
d3 as (
  update waymark.job_dependencies d set satisfied_at = null
  where d.job_id = any(array(select r.id from l as r where not r.from_start)) and d.kind = 'CHILD'
    and d.upstream_id = any((select ids from la)::uuid[])
),
p as (
  delete from waymark.payloads p
  where p.job_id = any(array(select l.id from l where l.finished)::uuid[]) and p.kind = 'result'
),
h as (
  insert into waymark.concurrency_keys as k (tenant, key, head_job_id)
  select distinct on (l.tenant, l.concurrency_key) l.tenant, l.concurrency_key, l.id
  from l where l.concurrency_key is not null and l.finished and not l.held
  order by l.tenant, l.concurrency_key, l.id
  on conflict (tenant, key) do update set head_job_id = k.head_job_id
  returning k.tenant, k.key, k.head_job_id
),
m as (
  update waymark.job_states s
  set state = case when l.held then 'DEFERRED' else 'QUEUED' end,
      waiting_kind = case when l.held then 'DEPENDENCIES' end, failed_upstream_id = null,
      blocked = case when l.finished then coalesce(h.head_job_id <> l.id and not l.held, false) else s.blocked end,
      run = s.run + l.finished::int, epoch = s.epoch + l.from_start::int,
      failures = case when l.finished then 0 else s.failures end,
      stalls = case when l.finished then 0 else s.stalls end,
      releases = 0, suspensions = case when l.finished then 0 else s.suspensions end,
      rank = t.now - l.priority * $7::bigint * interval '1 millisecond', run_at = t.now,
      queued_at = case when l.held then s.queued_at else l.at end,
      started_at = case when l.finished then null else s.started_at end,
      finished_at = null, result_digest = null,
      progress = case when l.from_start then null else s.progress end,
      cancel_requested_at = case when l.finished then null else s.cancel_requested_at end,
      cancel_requested_by = case when l.finished then null else s.cancel_requested_by end,
      cancel_reason = case when l.finished then null else s.cancel_reason end,
      cancel_delivered_at = case when l.finished then null else s.cancel_delivered_at end,
      cancel_stopped_at = case when l.finished then null else s.cancel_stopped_at end,
      cancel_forced = s.cancel_forced and not l.finished,
      cancel_cascade = s.cancel_cascade or l.finished,
      version = s.version + 1, last_seq = s.last_seq + 1, changed_at = l.at
  from l left join h on h.tenant = l.tenant and h.key = l.concurrency_key, t
  where ${probes('s.id', 'l.id')}
  returning s.id, s.tenant, s.task, s.queue, l.state as from_state, s.state, s.version, s.last_seq, s.run, s.changed_at,
            l.root, l.finished, s.followed
),
w as (
  insert into waymark.followups (job_id, kind, created_at)
  select m.id, 'REVIVED', t.now from m, t where m.followed and m.finished
  union all
  select d.upstream_id, 'ENDED', t.now
  from m cross join lateral (
    select d.upstream_id from waymark.job_dependencies d
    where d.job_id = m.id and d.kind = 'DEPENDENCY' and d.satisfied_at is null offset 0) d, t
  where m.state = 'DEFERRED'
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at,
         case m.state when 'DEFERRED' then 'JobSuspended' else 'JobQueued' end as type, null::int as attempt, $3 as actor,
         case m.state
           when 'DEFERRED' then json_build_object('waitingKind', 'DEPENDENCIES', 'until', null,
                                                  'detail', 'Waits for what it depends on')
           else json_build_object('reason', case when m.root then $8::text else 'its parent was retried' end) end as data,
         m.followed and m.finished as followed
  from m
),
${WRITE_EVENTS},
${COUNT_DELTAS}
${SELECT_FOLLOWED}`;

/**
 * Finished → QUEUED as the next run (DEFERRED where what it depends on is unfinished), or SCHEDULED | RETRYING → QUEUED, due
 * now. `fromStart` opens a new epoch: the checkpoints are dropped; `fromCheckpoint` drops that key and what was saved after
 * it. Negative answers of people are dropped, too, so that they are asked again. `followed` says of a changed job that it
 * left a follow-up. What is left out of the answer is another's, pruned, in another state or run, has no such checkpoint, or has
 * lost its key to a later job. When a root is left out, the caller must undo the whole or mean each root for itself.
 * Of jobs that are retried together those that depend on others of them wait for these.
 * @param children failed and canceled children, at any depth, that run again with them; null: it finds them
 */
export function retry(
  db: Executor,
  ids: readonly string[],
  children: readonly string[] | null,
  by: {
    tenant: string;
    actor: string;
    expectedRun: number | null;
    fromStart: boolean;
    fromCheckpoint: string | null;
    reason: string;
    priorityStepMs: number;
  },
): Promise<ChangeRow[]> {
  return db.query<ChangeRow>(RETRY, [
    pgArray([...new Set([...ids, ...(children ?? [])])]),
    by.tenant,
    by.actor,
    by.expectedRun,
    by.fromStart,
    by.fromCheckpoint,
    by.priorityStepMs,
    by.reason,
    pgArray(ids),
    children === null,
  ]);
}
