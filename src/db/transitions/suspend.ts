import { MAX_SUSPENSIONS } from '../../core/state.ts';
import { type ChangeRow, COUNT_DELTAS, LEAVE_FOLLOWUPS, MOVED, SELECT_FOLLOWED, WRITE_EVENTS } from '../changes.ts';
import { column, pgArray, pgTextArray, probes, textColumn } from '../sql.ts';
import type { Tx } from '../types.ts';

/** A sleep that an attempt waits for: a new one by its length, an earlier one by its end. */
export interface SleepInput {
  key: string;
  delayMs: number | null;
  /** RFC 3339. */
  until: string | null;
}

/** How an attempt suspends, in stored form. */
export interface SuspendInput {
  jobId: string;
  attempt: number;
  digest: string;
  kind: 'REVIEW' | 'SLEEP' | 'CHILDREN';
  /** One readable sentence. */
  detail: string;
  approvalIds: readonly string[];
  sleeps: readonly SleepInput[];
  /** JSON text. */
  progress: string | null;
  priorityStepMs: number;
}

const LOCK = `
select s.id from waymark.job_states s
where s.id = $1::uuid and s.worker_id is not null and s.attempt = $2::int
for no key update`;

// A child that ended before and runs again meanwhile is waited for again. Should it have ended anew in this very moment,
// the follow-up finds it.
const AGAIN = `
with d as (
  update waymark.job_dependencies d set satisfied_at = null
  from waymark.job_states u
  where d.job_id = $1::uuid and d.kind = 'CHILD' and d.satisfied_at is not null
    and ${probes('u.id', 'd.upstream_id')} and u.finished_at is null
  returning d.upstream_id
)
insert into waymark.followups (job_id, kind, created_at) select d.upstream_id, 'ENDED', clock_timestamp() from d`;

const JSON_TIME = (at: string) => `to_char(${at} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

// A sleep ends when its time has come, or, for the one that this suspension waits for, when the job goes on in the same run:
// by its time or by somebody's "run now". So only the earliest carries the run.
const SUSPEND = `
with t as materialized (select clock_timestamp() as now),
l as materialized (
  select s.*, j.priority, greatest(t.now, s.changed_at) as at
  from waymark.job_states s join waymark.jobs j on j.id = s.id, t
  where s.id = $1::uuid and s.worker_id is not null and s.attempt = $2::int
),
z as materialized (
  select x.key, x.n, coalesce(x.until, t.now + x.delay_ms * interval '1 millisecond') as until
  from t, unnest($6::text[], $7::bigint[], $8::timestamptz[]) with ordinality as x(key, delay_ms, until, n)
),
u as materialized (
  select case $4::text
           when 'SLEEP' then (select min(z.until) from z)
           when 'REVIEW' then (select min(a.expires_at) from waymark.approvals a
                               where a.id = any($5::uuid[]) and coalesce(a.state, '') = 'OPEN') end as until,
         case $4::text
           when 'REVIEW' then exists (select 1 from waymark.approvals a where a.id = any($5::uuid[]) and a.state <> 'OPEN')
           when 'CHILDREN' then not exists (
             select 1 from waymark.job_dependencies d
             where d.job_id = $1::uuid and d.kind = 'CHILD' and d.satisfied_at is null)
           else (select min(z.until) from z) <= (select now from t) end as answered
),
d as materialized (
  select l.*, u.until, u.answered, (select count(*)::int from z) as sleeps,
         case
           when l.cancel_requested_at is not null then 'CANCELED'
           when l.suspensions >= ${MAX_SUSPENSIONS} then 'FAILED'
           when u.answered then 'QUEUED'
           when $4::text = 'REVIEW' then 'WAITING_FOR_REVIEW'
           when $4::text = 'SLEEP' then 'SCHEDULED'
           else 'DEFERRED'
         end as to_state
  from l, u
),
m as (
  update waymark.job_states s
  set state = d.to_state, worker_id = null, version = s.version + 1, last_seq = s.last_seq + d.sleeps + 2,
      changed_at = d.at, suspensions = s.suspensions + 1, releases = 0,
      waiting_kind = case when d.to_state in ('SCHEDULED', 'DEFERRED') then $4::text end,
      run_at = case when d.to_state = 'SCHEDULED' then d.until else s.run_at end,
      rank = case when d.to_state = 'QUEUED' then d.at - d.priority * $11::bigint * interval '1 millisecond' else s.rank end,
      queued_at = case when d.to_state = 'QUEUED' then d.at else s.queued_at end,
      finished_at = case when d.to_state in ('FAILED', 'CANCELED') then d.at end,
      cancel_stopped_at = case when d.to_state = 'CANCELED' then d.at else s.cancel_stopped_at end,
      error = case when d.to_state = 'FAILED' then json_build_object('code', 'TOO_MANY_SUSPENSIONS',
        'message', 'waited for people, time or children more than ${MAX_SUSPENSIONS} times in one run',
        'retryable', false, 'attempt', s.attempt, 'at', ${JSON_TIME('d.at')}) else s.error end,
      progress = coalesce($10::json, s.progress)
  from d
  where ${probes('s.id', 'd.id')} and s.worker_id is not null and s.attempt = d.attempt
  returning s.id, s.tenant, s.task, s.queue, 'RUNNING'::text as from_state, s.state, s.version, s.last_seq, s.run, s.epoch,
            s.attempt, s.changed_at, s.attempt_started_at, s.resumed_from, s.followed, s.error, s.cancel_requested_by,
            s.cancel_reason, d.worker_id, d.until, d.sleeps
),
a as (
  insert into waymark.ended_attempts (job_id, number, run, outcome, digest, error, worker_id, started_at, finished_at,
                                      resumed_from)
  select m.id, m.attempt, m.run, 'SUSPENDED', $3, null, m.worker_id, m.attempt_started_at, m.changed_at, m.resumed_from
  from m
),
k as (
  insert into waymark.checkpoints as c (job_id, epoch, key, sequence, kind, data, attempt, created_at, updated_at)
  select m.id, m.epoch, z.key, m.last_seq - 2 - m.sleeps + z.n, 'SLEEP',
         json_build_object('until', ${JSON_TIME('z.until')}, 'run', case when z.until = m.until then m.run end), m.attempt,
         m.changed_at, m.changed_at
  from m, z
  on conflict (job_id, epoch, key) do update
  set sequence = excluded.sequence, data = excluded.data, attempt = excluded.attempt, updated_at = excluded.updated_at
),
v as materialized (
  select ${MOVED}, (m.last_seq - 2 - m.sleeps + z.n)::int as seq, m.changed_at as at, 'CheckpointSaved' as type, m.attempt,
         null as actor, json_build_object('key', z.key, 'kind', 'SLEEP') as data, m.followed
  from m, z
  union all
  select ${MOVED}, m.last_seq - 1, m.changed_at, 'AttemptEnded', m.attempt, null,
         json_build_object('outcome', 'SUSPENDED', 'error', null), m.followed
  from m
  union all
  select ${MOVED}, m.last_seq, m.changed_at,
         case m.state when 'CANCELED' then 'JobCanceled' when 'FAILED' then 'JobFailed' when 'QUEUED' then 'JobQueued'
                      else 'JobSuspended' end,
         m.attempt, case when m.state = 'CANCELED' then m.cancel_requested_by end,
         case m.state
           when 'CANCELED' then json_build_object('reason', m.cancel_reason)
           when 'FAILED' then json_build_object('error', m.error)
           when 'QUEUED' then json_build_object('reason', 'what it waits for is there already')
           else json_build_object('waitingKind', $4::text, 'detail', $9::text, 'until', ${JSON_TIME('m.until')})
         end, m.followed
  from m
),
${WRITE_EVENTS},
${LEAVE_FOLLOWUPS},
${COUNT_DELTAS}
${SELECT_FOLLOWED}
order by v.seq`;

/**
 * RUNNING → WAITING_FOR_REVIEW, SCHEDULED or DEFERRED, by what the attempt waits for; QUEUED where that is there already,
 * CANCELED where that was asked for. Empty answer: the attempt no longer owns the job.
 */
export async function suspend(tx: Tx, input: SuspendInput): Promise<ChangeRow[]> {
  // Whether it is there already is asked behind the lock: whoever decides, or ends a child, locks the job, too.
  const locked = await tx.query(LOCK, [input.jobId, input.attempt]);
  if (locked.length === 0) return [];
  if (input.kind === 'CHILDREN') await tx.query(AGAIN, [input.jobId]);
  return tx.query<ChangeRow>(SUSPEND, [
    input.jobId,
    input.attempt,
    input.digest,
    input.kind,
    pgArray(input.approvalIds),
    pgTextArray(input.sleeps.map((s) => s.key)),
    column(input.sleeps.map((s) => s.delayMs)),
    textColumn(input.sleeps.map((s) => s.until)),
    input.detail,
    input.progress,
    input.priorityStepMs,
  ]);
}
