import { type ChangeRow, COUNT_DELTAS, MOVED, SELECT_CHANGES, WRITE_EVENTS } from '../changes.ts';
import { probes } from '../sql.ts';
import type { Executor } from '../types.ts';

/** The part of `stage` and `runNow` behind the lock `l(id, state, due, at, priority)`. */
const queueLocked = (actor: string, reason: string) => `
m as (
  update waymark.job_states s
  set state = 'QUEUED', rank = l.due - l.priority * $1::bigint * interval '1 millisecond', queued_at = l.at,
      waiting_kind = null, run_at = l.due, version = s.version + 1, last_seq = s.last_seq + 1, changed_at = l.at
  from l
  where ${probes('s.id', 'l.id')}
  returning s.id, s.tenant, s.task, s.queue, l.state as from_state, s.state, s.version, s.last_seq, s.run, s.changed_at
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at, 'JobQueued' as type, null::int as attempt,
         ${actor} as actor, json_build_object('reason', ${reason}) as data
  from m
),
${WRITE_EVENTS},
${COUNT_DELTAS}
${SELECT_CHANGES}`;

// SKIP LOCKED: several processes stage at once, and none waits for another. The moment is a scalar subquery, so that it
// bounds the index scan; as a join's filter it was tried on every waiting job, at each poll.
const STAGE = `
with t as materialized (select clock_timestamp() as now),
l as materialized (
  select s.id, s.state, s.run_at as due, greatest(t.now, s.changed_at) as at, j.priority
  from waymark.job_states s join waymark.jobs j on ${probes('j.id', 's.id')}, t
  where s.state in ('SCHEDULED', 'RETRYING') and s.run_at <= (select now from t)
  order by s.run_at
  limit $2::int
  for no key update of s skip locked
),
${queueLocked('null::text', "case when m.from_state = 'RETRYING' then 'next attempt is due' else 'its time has come' end")}`;

/** SCHEDULED | RETRYING → QUEUED for up to `limit` jobs whose time has come. */
export function stage(db: Executor, options: { priorityStepMs: number; limit: number }): Promise<ChangeRow[]> {
  return db.query<ChangeRow>(STAGE, [options.priorityStepMs, options.limit]);
}

const NEXT_DUE = `
select (extract(epoch from min(s.run_at) - clock_timestamp()) * 1000)::float8 as ms
from waymark.job_states s where s.state in ('SCHEDULED', 'RETRYING')`;

/** Milliseconds until the next job is due (negative: it is already), or null when none waits for time. */
export async function nextDue(db: Executor): Promise<number | null> {
  const [row] = await db.query<{ ms: number | null }>(NEXT_DUE);
  return row?.ms ?? null;
}

const RUN_NOW = `
with t as materialized (select clock_timestamp() as now),
l as materialized (
  select s.id, s.state, t.now as due, greatest(t.now, s.changed_at) as at, j.priority
  from waymark.job_states s join waymark.jobs j on j.id = s.id, t
  where s.id = $2::uuid and s.tenant = $3 and s.state in ('SCHEDULED', 'RETRYING')
  for no key update of s
),
${queueLocked('$4::text', "'run now'")}`;

/** SCHEDULED | RETRYING → QUEUED for one job, whatever its time. Empty: another's, or in another state. */
export function runNow(
  db: Executor,
  id: string,
  by: { tenant: string; actor: string; priorityStepMs: number },
): Promise<ChangeRow[]> {
  return db.query<ChangeRow>(RUN_NOW, [by.priorityStepMs, id, by.tenant, by.actor]);
}
