import {
  CHANGE_COLUMNS,
  type ChangeRow,
  COUNT_DELTAS,
  LEAVE_FOLLOWUPS,
  MOVED,
  SELECT_CHANGES,
  WRITE_EVENTS,
} from '../changes.ts';
import { pgArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';

// The new row is made of `s` alone, never of the state in `l`: where a claim came between this statement's snapshot and
// its lock, `s` is first the old version, and Postgres checks the constraints of the row made from it before it looks
// for the newest. A row of both versions, RUNNING without a worker, would fail the statement.
const CANCEL = `
with t as materialized (select clock_timestamp() as now),
l as materialized (
  select s.id, s.state, greatest(t.now, s.changed_at) as at
  from waymark.job_states s, t
  where s.id = any($1::uuid[]) and ($2::text is null or s.tenant = $2)
    and s.state in ('DEFERRED', 'SCHEDULED', 'QUEUED', 'RUNNING', 'WAITING_FOR_REVIEW', 'RETRYING')
    and s.cancel_requested_at is null and ($5::int is null or s.run = $5)
  order by s.id
  for no key update of s
),
m as (
  update waymark.job_states s
  set state = case when s.state = 'RUNNING' then 'RUNNING' else 'CANCELED' end,
      cancel_requested_at = l.at, cancel_requested_by = $3, cancel_reason = $4, cancel_cascade = $6::boolean,
      waiting_kind = null, blocked = false,
      cancel_stopped_at = case when s.state = 'RUNNING' then null else l.at end,
      finished_at = case when s.state = 'RUNNING' then null else l.at end,
      version = s.version + 1, last_seq = s.last_seq + 1, changed_at = l.at
  from l
  where ${probes('s.id', 'l.id')}
  returning s.id, s.tenant, s.task, s.queue, l.state as from_state, s.state, s.version, s.last_seq, s.run, s.attempt,
            s.changed_at, s.worker_id, s.followed
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at,
         case when m.state = 'RUNNING' then 'CancelRequested' else 'JobCanceled' end as type,
         case when m.state = 'RUNNING' then m.attempt end as attempt, $3 as actor,
         json_build_object('reason', $4::text) as data, m.worker_id, m.followed
  from m
),
${WRITE_EVENTS},
${LEAVE_FOLLOWUPS},
${COUNT_DELTAS}
select ${CHANGE_COLUMNS}, v.followed, v.worker_id as "workerId"
from v`;

/**
 * Unfinished → CANCELED, or, in RUNNING, a request that its worker carries out. Jobs that are finished, asked already,
 * another tenant's or in another run than `expectedRun` are left out of the answer.
 */
export function cancel(
  db: Executor,
  ids: readonly string[],
  by: {
    /** Null: of any tenant. */
    tenant: string | null;
    actor: string | null;
    reason: string | null;
    expectedRun: number | null;
    /** Whether its unfinished children are canceled, too, when it ends by this. */
    cascade: boolean;
  },
): Promise<(ChangeRow & { workerId: string | null })[]> {
  return db.query(CANCEL, [pgArray(ids), by.tenant, by.actor, by.reason, by.expectedRun, by.cascade]);
}

const DELIVERED = `
with m as (
  update waymark.job_states s
  set cancel_delivered_at = greatest(clock_timestamp(), s.changed_at),
      changed_at = greatest(clock_timestamp(), s.changed_at),
      version = s.version + 1, last_seq = s.last_seq + 1
  where s.id = $1::uuid and s.state = 'RUNNING' and s.attempt = $2::int
    and s.cancel_requested_at is not null and s.cancel_delivered_at is null
  returning s.id, s.tenant, s.task, s.queue, 'RUNNING'::text as from_state, s.state, s.version, s.last_seq, s.run,
            s.attempt, s.changed_at
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at, 'CancelDelivered' as type, m.attempt, null as actor,
         null::json as data
  from m
),
${WRITE_EVENTS}
${SELECT_CHANGES}`;

/** The handler's signal fired: recorded once per request. */
export function cancelDelivered(db: Executor, jobId: string, attempt: number): Promise<ChangeRow[]> {
  return db.query<ChangeRow>(DELIVERED, [jobId, attempt]);
}
