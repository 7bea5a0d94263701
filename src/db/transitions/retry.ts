import { type ChangeRow, COUNT_DELTAS, MOVED, SELECT_CHANGES, WRITE_EVENTS } from '../changes.ts';
import type { Executor } from '../types.ts';

const RETRY = `
with t as materialized (select clock_timestamp() as now),
l as materialized (
  select s.id, s.state, s.finished_at is not null as finished, greatest(t.now, s.changed_at) as at, j.priority,
         x.sequence as from_sequence
  from waymark.job_states s
  join waymark.jobs j on j.id = s.id
  left join waymark.checkpoints x on x.job_id = s.id and x.epoch = s.epoch and x.key = $6::text, t
  where s.id = $1::uuid and s.tenant = $2
    and s.state in ('COMPLETED', 'FAILED', 'CANCELED', 'SCHEDULED', 'RETRYING')
    and s.pruned_at is null and ($4::int is null or s.run = $4) and ($6::text is null or x.sequence is not null)
  for no key update of s
),
x as (
  delete from waymark.checkpoints c using l
  where c.job_id = l.id and (c.sequence >= l.from_sequence or $5::boolean)
),
p as (
  delete from waymark.payloads p using l where p.job_id = l.id and p.kind = 'result' and l.finished
),
m as (
  update waymark.job_states s
  set state = 'QUEUED', blocked = false,
      run = s.run + l.finished::int, epoch = s.epoch + $5::int,
      failures = case when l.finished then 0 else s.failures end,
      stalls = case when l.finished then 0 else s.stalls end,
      releases = 0, suspensions = case when l.finished then 0 else s.suspensions end,
      rank = t.now - l.priority * $7::bigint * interval '1 millisecond', run_at = t.now, queued_at = l.at,
      started_at = case when l.finished then null else s.started_at end,
      finished_at = null, result_digest = null,
      progress = case when $5::boolean then null else s.progress end,
      cancel_requested_at = case when l.finished then null else s.cancel_requested_at end,
      cancel_requested_by = case when l.finished then null else s.cancel_requested_by end,
      cancel_reason = case when l.finished then null else s.cancel_reason end,
      cancel_delivered_at = case when l.finished then null else s.cancel_delivered_at end,
      cancel_stopped_at = case when l.finished then null else s.cancel_stopped_at end,
      cancel_forced = s.cancel_forced and not l.finished,
      version = s.version + 1, last_seq = s.last_seq + 1, changed_at = l.at
  from l, t
  where s.id = l.id
  returning s.id, s.tenant, s.task, s.queue, l.state as from_state, s.state, s.version, s.last_seq, s.run, s.changed_at
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at, 'JobQueued' as type, null::int as attempt, $3 as actor,
         json_build_object('reason', $8::text) as data
  from m
),
${WRITE_EVENTS},
${COUNT_DELTAS}
${SELECT_CHANGES}`;

/**
 * Finished → QUEUED as the next run, or SCHEDULED | RETRYING → QUEUED, due now. `fromStart` opens a new epoch: the
 * checkpoints are dropped; `fromCheckpoint` drops that key and what was saved after it. Empty answer: the job is
 * another's, pruned, in another state or run, or has no such checkpoint.
 */
export function retry(
  db: Executor,
  id: string,
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
    id,
    by.tenant,
    by.actor,
    by.expectedRun,
    by.fromStart,
    by.fromCheckpoint,
    by.priorityStepMs,
    by.reason,
  ]);
}
