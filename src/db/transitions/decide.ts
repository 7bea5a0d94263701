import type { ApprovalAnswer, ApprovalRow, Verdict } from '../../core/approval.ts';
import type { JobState } from '../../core/state.ts';
import { type ChangeRow, COUNT_DELTAS, MOVED, SELECT_CHANGES, WRITE_EVENTS } from '../changes.ts';
import { APPROVAL_COLUMNS } from '../reads/approvals.ts';
import { probes } from '../sql.ts';
import type { Executor, Tx } from '../types.ts';

const lockJob = (skipLocked: boolean) => `
select s.id, s.state from waymark.job_states s
where s.id = $1::uuid for no key update${skipLocked ? ' skip locked' : ''}`;
const LOCK_JOB = lockJob(false);
const LOCK_FREE_JOB = lockJob(true);

const LOCK_APPROVAL = `
select ${APPROVAL_COLUMNS} from waymark.approvals a join waymark.jobs j on j.id = a.job_id
where a.id = $1::uuid for no key update of a`;

/** Locks the job, then its approval: whoever decides about one job comes one after the other. Null: gone, or held. */
export async function lockForDecision(
  tx: Tx,
  ids: { approvalId: string; jobId: string },
  wait: boolean,
): Promise<{ approval: ApprovalRow; jobState: JobState } | null> {
  const [job] = await tx.query<{ state: JobState }>(wait ? LOCK_JOB : LOCK_FREE_JOB, [ids.jobId]);
  if (job === undefined) return null;
  const [approval] = await tx.query<ApprovalRow>(LOCK_APPROVAL, [ids.approvalId]);
  return approval === undefined ? null : { approval, jobState: job.state };
}

/** Records one person's vote. */
export async function recordVote(
  tx: Tx,
  vote: { approvalId: string; actor: string; verdict: Verdict; comment: string | null; data: string | null },
): Promise<{ at: string }> {
  const [row] = await tx.query<{ at: string }>(
    `insert into waymark.approval_decisions (approval_id, actor, verdict, comment, data, at)
values ($1::uuid, $2, $3, $4, $5::json, clock_timestamp()) returning at`,
    [vote.approvalId, vote.actor, vote.verdict, vote.comment, vote.data],
  );
  return row as { at: string };
}

// The answer is a checkpoint of the same transaction, numbered by the event that tells of it. A job that is running or in
// line when one of its approvals is decided stays there: it finds the answer when it asks.
const CLOSE = `
with t as materialized (select clock_timestamp() as now),
l as materialized (
  select s.id, s.state, s.state = 'WAITING_FOR_REVIEW' as moves, greatest(t.now, s.changed_at) as at, j.priority
  from waymark.job_states s join waymark.jobs j on j.id = s.id, t where s.id = $1::uuid
),
a as (
  update waymark.approvals a
  set state = $3, version = a.version + 1, decided_at = l.at, decided_by = $4, comment = $5, data = $6::json
  from l where a.id = $2::uuid
  returning a.key, a.epoch
),
m as (
  update waymark.job_states s
  set state = case when l.moves then 'QUEUED' else s.state end,
      rank = case when l.moves then l.at - l.priority * $9::bigint * interval '1 millisecond' else s.rank end,
      queued_at = case when l.moves then l.at else s.queued_at end,
      version = s.version + 1, last_seq = s.last_seq + 1 + l.moves::int, changed_at = l.at
  from l
  where ${probes('s.id', 'l.id')}
  returning s.id, s.tenant, s.task, s.queue, l.state as from_state, s.state, s.version, s.last_seq, s.run, s.attempt,
            s.epoch, s.changed_at, l.moves
),
k as (
  insert into waymark.checkpoints as c (job_id, epoch, key, sequence, kind, data, attempt, created_at, updated_at)
  select m.id, a.epoch, a.key, m.last_seq - m.moves::int, 'APPROVAL', $7::json, m.attempt, m.changed_at, m.changed_at
  from m, a
  on conflict (job_id, epoch, key) do nothing
),
v as materialized (
  select ${MOVED}, m.last_seq - m.moves::int as seq, m.changed_at as at, 'ApprovalDecided' as type,
         null::int as attempt, $4 as actor, $8::json as data
  from m
  union all
  select ${MOVED}, m.last_seq, m.changed_at, 'JobQueued', null, $4,
         json_build_object('reason', 'approval ' || a.key || case $3 when 'APPROVED' then ' was given'
                                     when 'REJECTED' then ' was refused' else ' expired' end)
  from m, a where m.moves
),
${WRITE_EVENTS},
${COUNT_DELTAS}
${SELECT_CHANGES}
order by v.seq`;

/** OPEN → APPROVED | REJECTED | EXPIRED, the answer saved for the handler, and the job WAITING_FOR_REVIEW → QUEUED. */
export function closeApproval(
  tx: Tx,
  closing: {
    jobId: string;
    approvalId: string;
    state: 'APPROVED' | 'REJECTED' | 'EXPIRED';
    answer: ApprovalAnswer;
    /** Data of the ApprovalDecided event. */
    event: object;
    priorityStepMs: number;
  },
): Promise<ChangeRow[]> {
  const { by, comment, data } = closing.answer;
  return tx.query<ChangeRow>(CLOSE, [
    closing.jobId,
    closing.approvalId,
    closing.state,
    by,
    comment,
    data === null ? null : JSON.stringify(data),
    JSON.stringify(closing.answer),
    JSON.stringify(closing.event),
    closing.priorityStepMs,
  ]);
}

const NOTE_VOTE = `
with t as materialized (select clock_timestamp() as now),
a as (update waymark.approvals a set version = a.version + 1 where a.id = $2::uuid),
m as (
  update waymark.job_states s
  set version = s.version + 1, last_seq = s.last_seq + 1, changed_at = greatest(t.now, s.changed_at)
  from t where s.id = $1::uuid
  returning s.id, s.tenant, s.task, s.queue, s.state as from_state, s.state, s.version, s.last_seq, s.run, s.changed_at
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at, 'ApprovalDecided' as type, null::int as attempt, $3 as actor,
         $4::json as data
  from m
),
${WRITE_EVENTS}
${SELECT_CHANGES}`;

/** The event of a vote that does not decide yet. */
export function noteVote(
  tx: Tx,
  vote: { jobId: string; approvalId: string; actor: string; event: object },
): Promise<ChangeRow[]> {
  return tx.query<ChangeRow>(NOTE_VOTE, [vote.jobId, vote.approvalId, vote.actor, JSON.stringify(vote.event)]);
}

const DUE = `
select a.id as "approvalId", a.job_id as "jobId" from waymark.approvals a
where a.state = 'OPEN' and a.expires_at is not null and a.expires_at <= (select clock_timestamp())
order by a.expires_at limit $1::int`;

/** Open approvals whose time is over, the longest overdue first. */
export function dueApprovals(db: Executor, limit: number): Promise<{ approvalId: string; jobId: string }[]> {
  return db.query(DUE, [limit]);
}

const NEXT_EXPIRY = `
select (extract(epoch from min(a.expires_at) - clock_timestamp()) * 1000)::float8 as ms
from waymark.approvals a where a.state = 'OPEN' and a.expires_at is not null`;

/** Milliseconds until the next approval expires (negative: it has), or null when none does. */
export async function nextExpiry(db: Executor): Promise<number | null> {
  const [row] = await db.query<{ ms: number | null }>(NEXT_EXPIRY);
  return row?.ms ?? null;
}
