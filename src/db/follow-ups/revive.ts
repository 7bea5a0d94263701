import { type ChangeRow, COUNT_DELTAS, MOVED, SELECT_CHANGES, WRITE_EVENTS } from '../changes.ts';
import { HAS_ITS_KEY, takeKeysBack } from '../key-rules.ts';
import { pgArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';

// A parent that waits for its children waits for a retried child again, and so does a job that had gone past it by CONTINUE
// and still waits for others. COALESCE: all DEFERRED jobs could be walked through else, in the index that lists them.
const UNSATISFY = `
update waymark.job_dependencies d set satisfied_at = null
from waymark.job_states u, waymark.job_states s
where d.upstream_id = any($1::uuid[]) and d.job_id = any($2::uuid[]) and d.satisfied_at is not null
  and ${probes('u.id', 'd.upstream_id')} and u.finished_at is null
  and ${probes('s.id', 'd.job_id')} and coalesce(s.state, '') = 'DEFERRED'`;

// One that another upstream job holds down, too, stays as it is, and names that one from now on.
const STILL_DOWN = `
update waymark.job_states s set failed_upstream_id = o.upstream_id
from (
  select distinct on (d.job_id) d.job_id, d.upstream_id
  from waymark.job_dependencies d join waymark.job_states u on ${probes('u.id', 'd.upstream_id')}
  where d.job_id = any($2::uuid[]) and not d.upstream_id = any($1::uuid[])
    and d.kind = 'DEPENDENCY' and d.policy <> 'CONTINUE' and d.satisfied_at is null and u.state in ('FAILED', 'CANCELED')
  order by d.job_id, d.upstream_id
) o
where ${probes('s.id', 'o.job_id')} and coalesce(s.state, '') = 'CANCELED' and s.failed_upstream_id = any($1::uuid[])`;

const REVIVE = `
with t as materialized (select clock_timestamp() as now),
o as materialized (
  select s.id, s.tenant, s.task, s.state, s.run, s.finished_at, s.changed_at, s.failed_upstream_id
  from waymark.job_states s
  where s.id = any($2::uuid[]) and s.state = 'CANCELED' and s.failed_upstream_id = any($1::uuid[])
    and s.pruned_at is null
),
${takeKeysBack('o')},
l as materialized (
  select o.id, o.state, greatest(t.now, o.changed_at) as at, coalesce(j.node_name, j.title, j.task) as by_name
  from o join waymark.jobs j on ${probes('j.id', 'o.failed_upstream_id')}, t
  where ${HAS_ITS_KEY}
),
m as (
  update waymark.job_states s
  set state = 'DEFERRED', waiting_kind = 'DEPENDENCIES', failed_upstream_id = null, run = s.run + 1, failures = 0,
      stalls = 0, releases = 0, suspensions = 0, started_at = null, finished_at = null, cancel_reason = null,
      cancel_requested_at = null, cancel_requested_by = null, cancel_delivered_at = null, cancel_stopped_at = null,
      cancel_forced = false, cancel_cascade = true,
      version = s.version + 1, last_seq = s.last_seq + 1, changed_at = l.at
  from l
  where ${probes('s.id', 'l.id')} and coalesce(s.state, '') = 'CANCELED'
  returning s.id, s.tenant, s.task, s.queue, l.state as from_state, s.state, s.version, s.last_seq, s.run, s.changed_at,
            s.followed, l.by_name
),
w as (
  insert into waymark.followups (job_id, kind, created_at) select m.id, 'REVIVED', t.now from m, t where m.followed
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at, 'JobSuspended' as type, null::int as attempt, null as actor,
         json_build_object('waitingKind', 'DEPENDENCIES', 'until', null,
                           'detail', format('Waits again: %s, which it depends on, was retried', m.by_name)) as data
  from m
),
${WRITE_EVENTS},
${COUNT_DELTAS}
${SELECT_CHANGES}`;

/**
 * CANCELED → DEFERRED, as the next run, for the locked jobs that were canceled because of retried ones; and waits again
 * for those where somebody had gone past. One whose key is another job's by now stays CANCELED.
 */
export async function reviveJobs(
  tx: Executor,
  retried: readonly string[],
  locked: readonly string[],
): Promise<ChangeRow[]> {
  const params = [pgArray(retried), pgArray(locked)];
  await tx.query(UNSATISFY, params);
  await tx.query(STILL_DOWN, params);
  return tx.query<ChangeRow>(REVIVE, params);
}
