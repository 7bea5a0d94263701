import type { AttemptOutcome, JobState } from '../../core/state.ts';
import { MAX_RELEASES_IN_A_ROW, MAX_SUSPENSIONS } from '../../core/state.ts';
import { type ChangeRow, COUNT_DELTAS, LEAVE_FOLLOWUPS, MOVED, SELECT_FOLLOWED, WRITE_EVENTS } from '../changes.ts';
import { column, jsonColumn, jsonColumnSql, pgArray, pgTextArray, probes, textColumn } from '../sql.ts';
import type { Executor } from '../types.ts';

/** How an attempt ended, in stored form. JSON columns are texts. */
export interface SettleInput {
  jobId: string;
  attempt: number;
  outcome: AttemptOutcome;
  /** Tells a repeated call (its answer was lost) from a late one. */
  digest: string;
  result: string | null;
  resultDigest: string | null;
  /** As kept with the job and sent with events: without its stack. */
  error: string | null;
  /** As kept with the attempt. */
  fullError: string | null;
  retryable: boolean;
  delayMs: number | null;
  reason: string | null;
  forced: boolean;
  progress: string | null;
}

// A handler that says it was canceled when nobody asked has only been stopped: the job is handed back.
const HANDED_BACK = `(i.outcome = 'RELEASED' or i.outcome = 'CANCELED' and s.cancel_requested_at is null)`;
const TOO_OFTEN = `s.releases >= ${MAX_RELEASES_IN_A_ROW}`;
const POSTPONED_TOO_OFTEN = `i.outcome = 'POSTPONED' and s.suspensions >= ${MAX_SUSPENSIONS}`;

/** What is recorded where no handler's error says why: a FAILED job always carries one. */
const ownError = (code: string, message: string, retryable: boolean) => `
         json_build_object('code', '${code}', 'message', '${message}', 'retryable', ${retryable}, 'attempt', s.attempt,
           'at', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::text`;
const errorOr = (given: string) => `
         case when ${HANDED_BACK} and ${TOO_OFTEN}
                then ${ownError('STALLED', `handed back ${MAX_RELEASES_IN_A_ROW + 1} times in a row`, true)}
              when ${POSTPONED_TOO_OFTEN}
                then ${ownError('RetryLater', `asked to come back later more than ${MAX_SUSPENSIONS} times in one run`, false)}
              else ${given} end`;

// The lock comes first and in id order: the list is sorted, and LATERAL probes the primary key once for each of its
// rows, whatever the planner believes of the list's length. Every decision below reads the locked row, the newest
// version, so that a cancel that was requested a moment ago is seen. RUNNING is said as "has a worker" (a constraint makes
// them equal): by the state's name the planner would walk the index of running jobs for every entry. SKIP LOCKED: a row held by another (a user's transaction about to
// save a checkpoint) must not hold up the batch; the caller settles it alone.
const settleSql = (skipLocked: boolean) => `
with t as materialized (select clock_timestamp() as now),
i as materialized (
  select * from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], ${jsonColumnSql('$5')}, $6::text[],
                       ${jsonColumnSql('$7')}, ${jsonColumnSql('$8')}, $9::boolean[], $10::bigint[], $11::text[],
                       $12::boolean[], ${jsonColumnSql('$13')})
    as x(id, attempt, outcome, digest, result, result_digest, error, full_error, retryable, delay_ms, reason, forced,
         progress)
  order by x.id
),
l as materialized (
  select s.id, s.tenant, s.task, s.queue, s.run, s.attempt, s.failures, s.max_attempts, s.stalls, s.releases,
         s.suspensions, s.cancel_requested_at, s.cancel_requested_by, s.cancel_reason, s.changed_at, s.worker_id,
         i.digest, i.result, i.result_digest, i.retryable, i.delay_ms, i.reason, i.forced,
         i.progress,
         ${errorOr('i.error')} as error,
         ${errorOr('i.full_error')} as full_error,
         case when ${HANDED_BACK} then case when ${TOO_OFTEN} then 'STALLED' else 'RELEASED' end
              else i.outcome end as outcome
  from i cross join lateral (
    select * from waymark.job_states s
    where s.id = i.id and s.worker_id is not null and s.attempt = i.attempt
    for no key update${skipLocked ? ' skip locked' : ''}
  ) s
),
d as materialized (
  select l.*, greatest(t.now, l.changed_at) as at,
         l.outcome in ('FAILED', 'TIMED_OUT', 'STALLED', 'NOT_ADVANCING') as spends,
         case
           when l.outcome = 'SUCCEEDED' then 'COMPLETED'
           when l.outcome in ('FAILED', 'TIMED_OUT', 'STALLED', 'NOT_ADVANCING')
             and (not l.retryable or l.failures + 1 >= l.max_attempts) then 'FAILED'
           when l.outcome = 'POSTPONED' and l.suspensions + 1 > ${MAX_SUSPENSIONS} then 'FAILED'
           when l.cancel_requested_at is not null then 'CANCELED'
           when l.outcome = 'STALLED' and l.stalls = 0 then 'QUEUED'
           when l.outcome in ('FAILED', 'TIMED_OUT', 'STALLED', 'NOT_ADVANCING') then 'RETRYING'
           when l.outcome = 'POSTPONED' then 'SCHEDULED'
           else 'QUEUED'
         end as to_state
  from l, t
),
m as (
  update waymark.job_states s
  set state = d.to_state, worker_id = null, version = s.version + 1,
      last_seq = s.last_seq + case when d.to_state = 'COMPLETED' then 1 else 2 end,
      changed_at = d.at,
      failures = s.failures + d.spends::int,
      stalls = s.stalls + (d.outcome = 'STALLED')::int,
      releases = case when d.outcome = 'RELEASED' then s.releases + 1 else 0 end,
      suspensions = s.suspensions + (d.outcome = 'POSTPONED')::int,
      finished_at = case when d.to_state in ('COMPLETED', 'FAILED', 'CANCELED') then d.at end,
      run_at = case when d.to_state in ('RETRYING', 'SCHEDULED')
                    then d.at + coalesce(d.delay_ms, 0) * interval '1 millisecond' else s.run_at end,
      queued_at = case when d.to_state = 'QUEUED' then d.at else s.queued_at end,
      result_digest = case when d.to_state = 'COMPLETED' then d.result_digest end,
      error = case when d.spends or d.to_state = 'FAILED' then d.error::json
                   when d.to_state = 'COMPLETED' then null else s.error end,
      cancel_stopped_at = case when d.to_state = 'CANCELED' then d.at else s.cancel_stopped_at end,
      cancel_forced = s.cancel_forced or (d.to_state = 'CANCELED' and d.forced),
      progress = coalesce(d.progress::json, s.progress)
  from d
  where ${probes('s.id', 'd.id')} and s.worker_id is not null and s.attempt = d.attempt
  returning s.id, s.tenant, s.task, s.queue, 'RUNNING'::text as from_state, s.state, s.version, s.last_seq, s.run,
            s.attempt, s.changed_at, s.run_at, d.outcome, d.digest, d.result, d.error, d.full_error, d.reason,
            d.cancel_requested_by, d.cancel_reason, d.worker_id, s.attempt_started_at, s.resumed_from, s.followed
),
a as (
  insert into waymark.ended_attempts (job_id, number, run, outcome, digest, error, worker_id, started_at, finished_at,
                                      resumed_from)
  select m.id, m.attempt, m.run, m.outcome, m.digest, m.full_error::json, m.worker_id, m.attempt_started_at,
         m.changed_at, m.resumed_from
  from m
),
p as (
  insert into waymark.payloads (job_id, kind, data)
  select m.id, 'result', m.result::json from m where m.state = 'COMPLETED' and m.result is not null
  on conflict (job_id, kind) do update set data = excluded.data
),
v as materialized (
  select ${MOVED}, m.last_seq - 1 as seq, m.changed_at as at, 'AttemptEnded' as type, m.attempt, null as actor,
         json_build_object('outcome', m.outcome, 'error', m.error::json) as data, m.followed
  from m where m.state <> 'COMPLETED'
  union all
  select ${MOVED}, m.last_seq, m.changed_at,
         case m.state when 'COMPLETED' then 'JobCompleted' when 'FAILED' then 'JobFailed'
                      when 'CANCELED' then 'JobCanceled' when 'QUEUED' then 'JobQueued' else 'RetryScheduled' end,
         m.attempt, case when m.state = 'CANCELED' then m.cancel_requested_by end,
         case m.state
           when 'COMPLETED' then null
           when 'FAILED' then json_build_object('error', m.error::json)
           when 'CANCELED' then json_build_object('reason', m.cancel_reason)
           when 'QUEUED' then json_build_object('reason', case when m.outcome = 'STALLED'
             then 'its worker was lost' else coalesce(m.reason, 'handed back by its worker') end)
           else json_build_object('runAt', to_char(m.run_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                                  'reason', m.reason)
         end, m.followed
  from m
),
${WRITE_EVENTS},
${LEAVE_FOLLOWUPS},
${COUNT_DELTAS}
${SELECT_FOLLOWED}`;

const SETTLE_TOGETHER = settleSql(true);
const SETTLE_ALONE = settleSql(false);

/**
 * RUNNING → whatever the outcome, the budget and a requested cancel say, for many attempts at once.
 * @param wait false: rows that somebody else holds are left out of the answer, as are attempts that no longer own
 *   their job; true: held rows are waited for
 */
export function settle(db: Executor, ends: readonly SettleInput[], wait: boolean): Promise<ChangeRow[]> {
  return db.query<ChangeRow>(wait ? SETTLE_ALONE : SETTLE_TOGETHER, [
    pgArray(ends.map((e) => e.jobId)),
    pgArray(ends.map((e) => e.attempt)),
    pgTextArray(ends.map((e) => e.outcome)),
    pgTextArray(ends.map((e) => e.digest)),
    jsonColumn(ends.map((e) => e.result)),
    textColumn(ends.map((e) => e.resultDigest)),
    jsonColumn(ends.map((e) => e.error)),
    jsonColumn(ends.map((e) => e.fullError)),
    pgArray(ends.map((e) => e.retryable)),
    column(ends.map((e) => e.delayMs)),
    textColumn(ends.map((e) => e.reason)),
    pgArray(ends.map((e) => e.forced)),
    jsonColumn(ends.map((e) => e.progress)),
  ]);
}

/** What is recorded of attempts that a settle did not change. */
export interface UnsettledRow {
  jobId: string;
  attempt: number;
  outcome: AttemptOutcome | null;
  digest: string | null;
  state: JobState;
  /** Whether the attempt still owns the job: then its row was held by another. */
  owns: boolean;
}

// Two probes for each, whatever the planner believes: joined with the view of all attempts it would read every one.
const UNSETTLED = `
select x.id as "jobId", x.attempt, a.outcome, a.digest, s.state, s.owns
from unnest($1::uuid[], $2::int[]) as x(id, attempt)
cross join lateral (
  select s.state, s.worker_id is not null and s.attempt = x.attempt as owns
  from waymark.job_states s where s.id = x.id offset 0
) s
left join lateral (
  select a.outcome, a.digest from waymark.ended_attempts a where a.job_id = x.id and a.number = x.attempt offset 0
) a on true
where a.outcome is not null or s.owns`;

/** Why attempts were left out of a settle's answer. An attempt that is missing here is gone altogether. */
export function unsettled(db: Executor, ends: readonly { jobId: string; attempt: number }[]): Promise<UnsettledRow[]> {
  return db.query<UnsettledRow>(UNSETTLED, [pgArray(ends.map((e) => e.jobId)), pgArray(ends.map((e) => e.attempt))]);
}
