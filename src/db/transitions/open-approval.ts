import type { ShownApproval } from '../../core/approval.ts';
import { CHANGE_COLUMNS, type ChangeRow, MOVED, WRITE_EVENTS } from '../changes.ts';
import { pgTextArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';

/** An approval to be opened by a running attempt. */
export interface ApprovalInput extends ShownApproval {
  id: string;
  jobId: string;
  attempt: number;
  key: string;
  /** Time from now; null: it does not expire. */
  expiresInMs: number | null;
  digest: string;
}

// The fence is the lock, as with checkpoints. An approval of the key that is there already was opened by an earlier attempt,
// or by a call whose answer was lost: it stays as it is.
const OPEN = `
with t as materialized (select clock_timestamp() as now),
l as materialized (
  select s.id, s.tenant, s.run, s.epoch, s.changed_at from waymark.job_states s
  where s.id = $2::uuid and s.worker_id is not null and s.attempt = $3::int
  for no key update
),
n as (
  insert into waymark.approvals (id, tenant, job_id, run, epoch, key, state, title, body, schema, approvers,
                                 required_approvals, allow_submitter, on_expire, digest, requested_at, expires_at)
  select $1::uuid, l.tenant, l.id, l.run, l.epoch, $4, 'OPEN', $5, $6, $7::json, $8::text[], $9::int, $10::boolean, $11, $12,
         greatest(t.now, l.changed_at), t.now + $13::bigint * interval '1 millisecond'
  from l, t
  on conflict (job_id, epoch, key) where not superseded do nothing
  returning id, job_id
),
m as (
  update waymark.job_states s
  set version = s.version + 1, last_seq = s.last_seq + 1, changed_at = greatest(t.now, s.changed_at),
      last_advance_at = t.now, followed = true
  from n, t
  where ${probes('s.id', 'n.job_id')}
  returning s.id, s.tenant, s.task, s.queue, 'RUNNING'::text as from_state, s.state, s.version, s.last_seq, s.run,
            s.attempt, s.changed_at
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at, 'ApprovalRequested' as type, m.attempt, null as actor,
         json_build_object('key', $4::text, 'title', $5::text, 'approvalId', $1::uuid) as data
  from m
),
${WRITE_EVENTS}
select ${CHANGE_COLUMNS}
from v`;

const OPENED = `
select a.id, a.expires_at as "expiresAt", a.state
from waymark.job_states s join waymark.approvals a on a.job_id = s.id and a.epoch = s.epoch and a.key = $2
where s.id = $1::uuid and not a.superseded and s.worker_id is not null and s.attempt = $3::int`;

/** The approval that stands for a key now. */
export interface OpenedApproval {
  id: string;
  expiresAt: string | null;
  state: string;
}

/**
 * Opens an approval, with its event, unless the key has one; in either case gives the one that stands. Null: the attempt no
 * longer owns the job.
 */
export async function openApproval(
  tx: Executor,
  input: ApprovalInput,
): Promise<{ changes: ChangeRow[]; approval: OpenedApproval | null }> {
  const changes = await tx.query<ChangeRow>(OPEN, [
    input.id,
    input.jobId,
    input.attempt,
    input.key,
    input.title,
    input.body,
    input.schema === null ? null : JSON.stringify(input.schema),
    pgTextArray(input.approvers),
    input.requiredApprovals,
    input.allowSubmitter,
    input.onExpire,
    input.digest,
    input.expiresInMs,
  ]);
  const [approval] = await tx.query<OpenedApproval>(OPENED, [input.jobId, input.key, input.attempt]);
  return { changes, approval: approval ?? null };
}
