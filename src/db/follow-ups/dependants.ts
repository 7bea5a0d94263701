import {
  type ChangeRow,
  COUNT_DELTAS,
  LEAVE_FOLLOWUPS,
  MOVED,
  SELECT_CHANGES,
  SELECT_FOLLOWED,
  WRITE_EVENTS,
} from '../changes.ts';
import { pgArray, pgTextArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';
import { WAITS_NO_MORE } from './concurrency.ts';
import { edgesBehind } from './take.ts';

// An edge is satisfied once, by whoever finds its upstream job ended; whether that readies the dependant is asked of all
// its edges, in a later statement, under its lock.
const SATISFY = `
update waymark.job_dependencies d set satisfied_at = clock_timestamp()
from waymark.job_states u
where d.upstream_id = any($1::uuid[]) and d.job_id = any($2::uuid[]) and d.satisfied_at is null
  and ${probes('u.id', 'd.upstream_id')}
  and (u.state = 'COMPLETED' or u.state in ('FAILED', 'CANCELED') and d.policy in ('CONTINUE', 'CANCEL_SIBLINGS'))
returning d.job_id as id`;

/** Marks the edges behind ended jobs that no longer hold a dependant up. Returns the dependants. */
export async function satisfyEdges(
  tx: Executor,
  ended: readonly string[],
  locked: readonly string[],
): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(SATISFY, [pgArray(ended), pgArray(locked)]);
  return [...new Set(rows.map((row) => row.id))];
}

const READY = `
with t as materialized (select clock_timestamp() as now),
l as materialized (
  select s.id, s.state, s.waiting_kind, s.run_at > t.now and s.waiting_kind = 'DEPENDENCIES' as later,
         greatest(t.now, s.changed_at) as at, j.priority
  from waymark.job_states s join waymark.jobs j on ${probes('j.id', 's.id')}, t
  where s.id = any($2::uuid[]) and ${WAITS_NO_MORE}
),
m as (
  update waymark.job_states s
  set state = case when l.later then 'SCHEDULED' else 'QUEUED' end, waiting_kind = null,
      rank = case when l.later then s.rank else l.at - l.priority * $1::bigint * interval '1 millisecond' end,
      queued_at = case when l.later then s.queued_at else l.at end,
      version = s.version + 1, last_seq = s.last_seq + 1, changed_at = l.at
  from l
  where ${probes('s.id', 'l.id')} and coalesce(s.state, '') = 'DEFERRED'
  returning s.id, s.tenant, s.task, s.queue, l.state as from_state, s.state, s.version, s.last_seq, s.run, s.changed_at,
            s.run_at, l.waiting_kind
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at,
         case m.state when 'QUEUED' then 'JobQueued' else 'RetryScheduled' end as type,
         null::int as attempt, null as actor,
         case m.state
           when 'QUEUED' then json_build_object('reason', case m.waiting_kind
             when 'CHILDREN' then 'its children have ended' else 'what it depends on is done' end)
           else json_build_object('runAt', to_char(m.run_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                                  'reason', 'what it depends on is done') end as data
  from m
),
${WRITE_EVENTS},
${COUNT_DELTAS}
${SELECT_CHANGES}`;

/**
 * DEFERRED → QUEUED, or SCHEDULED until its time, for those of these locked jobs that wait for nothing any more. Whose
 * turn it is for their concurrency keys has been settled before (`takeTurns`).
 */
export function readyJobs(tx: Executor, ids: readonly string[], priorityStepMs: number): Promise<ChangeRow[]> {
  return tx.query<ChangeRow>(READY, [priorityStepMs, pgArray(ids)]);
}

// The whole way down in one statement: a dependant that ends here has dependants of its own, which end because of it.
// Those that are not locked (they came a moment ago) are left to the follow-up of the job that they depend on.
const DOWNSTREAM = `
with recursive l as materialized (
  select s.id from unnest($2::uuid[]) as i(id) cross join lateral (
    select s.id from waymark.job_states s
    where s.id = i.id and s.state = 'DEFERRED' and s.waiting_kind = 'DEPENDENCIES' offset 0) s
),
f(id, by, policy, cause) as (
  select d.job_id, d.upstream_id, d.policy, u.state
  from unnest($1::uuid[]) as i(id) cross join lateral (
    select u.id, u.state from waymark.job_states u where u.id = i.id and u.state in ('FAILED', 'CANCELED') offset 0) u
  cross join lateral ${edgesBehind('u.id')}
  join l on l.id = d.job_id
  where d.kind = 'DEPENDENCY' and d.policy <> 'CONTINUE' and d.satisfied_at is null
  union
  select d.job_id, d.upstream_id, d.policy, case f.policy when 'FAIL' then 'FAILED' else 'CANCELED' end
  from f cross join lateral ${edgesBehind('f.id')}
  join l on l.id = d.job_id
  where d.kind = 'DEPENDENCY' and d.policy <> 'CONTINUE' and d.satisfied_at is null
),
x as materialized (
  select distinct on (f.id) f.id, f.by, f.policy, f.cause from f order by f.id, f.policy desc, f.by
)
select x.id, x.by, x.policy, x.cause, coalesce(j.node_name, j.title, j.task) as "byName",
       left(case when u.state = 'FAILED' then u.error ->> 'message' else u.cancel_reason end, 300) as "byWhy"
from x
cross join lateral (select j.node_name, j.title, j.task from waymark.jobs j where j.id = x.by offset 0) j
cross join lateral (select u.state, u.error, u.cancel_reason from waymark.job_states u where u.id = x.by offset 0) u`;

/** A dependant that ends without having run, and the upstream job because of which. */
export interface DownstreamRow {
  id: string;
  by: string;
  policy: 'CANCEL' | 'FAIL';
  /** How the upstream job ended, or is about to. */
  cause: 'FAILED' | 'CANCELED';
  byName: string;
  /** What its error or its canceler said; null where it ends only now, too. */
  byWhy: string | null;
}

/** Everything downstream of ended jobs that is to end because of them, as the policies of the edges say. */
export function downstreamOf(
  tx: Executor,
  ended: readonly string[],
  locked: readonly string[],
): Promise<DownstreamRow[]> {
  return tx.query<DownstreamRow>(DOWNSTREAM, [pgArray(ended), pgArray(locked)]);
}

const END_DEFERRED = `
with t as materialized (select clock_timestamp() as now),
i as materialized (
  select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[]) as x(id, by, state, reason) order by x.id
),
m as (
  update waymark.job_states s
  set state = i.state, failed_upstream_id = i.by, waiting_kind = null, blocked = false,
      cancel_reason = case i.state when 'CANCELED' then i.reason end,
      finished_at = greatest(t.now, s.changed_at), changed_at = greatest(t.now, s.changed_at),
      error = case i.state when 'FAILED' then json_build_object('code', 'DEPENDENCY_FAILED', 'message', i.reason,
        'retryable', false, 'attempt', s.attempt,
        'at', to_char(t.now at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) else s.error end,
      version = s.version + 1, last_seq = s.last_seq + 1
  from i, t
  where ${probes('s.id', 'i.id')} and coalesce(s.state, '') = 'DEFERRED'
  returning s.id, s.tenant, s.task, s.queue, 'DEFERRED'::text as from_state, s.state, s.version, s.last_seq, s.run,
            s.changed_at, s.error, s.followed, i.reason
),
${LEAVE_FOLLOWUPS},
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at,
         case m.state when 'FAILED' then 'JobFailed' else 'JobCanceled' end as type, null::int as attempt, null as actor,
         case m.state when 'FAILED' then json_build_object('error', m.error)
                      else json_build_object('reason', m.reason) end as data, m.followed
  from m
),
${WRITE_EVENTS},
${COUNT_DELTAS}
${SELECT_FOLLOWED}`;

/** DEFERRED → CANCELED | FAILED for locked jobs whose upstream jobs did not complete. */
export function endDeferred(
  tx: Executor,
  ends: readonly { id: string; by: string; state: 'CANCELED' | 'FAILED'; reason: string }[],
): Promise<ChangeRow[]> {
  return tx.query<ChangeRow>(END_DEFERRED, [
    pgArray(ends.map((e) => e.id)),
    pgArray(ends.map((e) => e.by)),
    pgArray(ends.map((e) => e.state)),
    pgTextArray(ends.map((e) => e.reason)),
  ]);
}
