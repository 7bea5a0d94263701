import type { ApprovalRow, DecisionRow } from '../../core/approval.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

/** The select list of an ApprovalRow over `a` (approvals) and `j` (jobs). */
export const APPROVAL_COLUMNS = `
a.id, a.tenant, a.job_id as "jobId", a.run, a.key, a.state, a.superseded, a.title, a.body, a.schema, a.approvers,
a.required_approvals as "requiredApprovals", a.allow_submitter as "allowSubmitter", a.on_expire as "onExpire", a.version,
a.digest, a.requested_at as "requestedAt", a.expires_at as "expiresAt", a.decided_at as "decidedAt",
a.decided_by as "decidedBy", a.comment, a.data, j.submitted_by as "submittedBy"`;

const BY_IDS = `
select ${APPROVAL_COLUMNS}
from unnest($1::uuid[]) as i(id)
cross join lateral (select * from waymark.approvals x where x.id = i.id offset 0) a
cross join lateral (select x.submitted_by from waymark.jobs x where x.id = a.job_id offset 0) j
where a.tenant = $2`;

/** The approvals of these ids that the tenant has, in no particular order. */
export function approvalsByIds(db: Executor, tenant: string, ids: readonly string[]): Promise<ApprovalRow[]> {
  return db.query<ApprovalRow>(BY_IDS, [pgArray(ids), tenant]);
}

const BY_JOBS = `
select ${APPROVAL_COLUMNS}
from unnest($1::uuid[]) as i(id)
cross join lateral (select * from waymark.approvals x where x.job_id = i.id offset 0) a
cross join lateral (select x.submitted_by from waymark.jobs x where x.id = a.job_id offset 0) j
where a.tenant = $2
order by a.job_id, a.id`;

/** All approvals of these jobs, those of earlier runs included, each job's in the order in which they were opened. */
export function approvalsOfJobs(db: Executor, tenant: string, jobIds: readonly string[]): Promise<ApprovalRow[]> {
  return db.query<ApprovalRow>(BY_JOBS, [pgArray(jobIds), tenant]);
}

/** The votes on these approvals, each approval's in the order in which they were cast. */
export function decisionsOf(db: Executor, approvalIds: readonly string[]): Promise<DecisionRow[]> {
  return db.query<DecisionRow>(
    `select d.approval_id as "approvalId", d.actor as by, d.at, d.verdict, d.comment, d.data
from waymark.approval_decisions d where d.approval_id = any($1::text::uuid[]) order by d.approval_id, d.at, d.actor`,
    [pgArray(approvalIds)],
  );
}
