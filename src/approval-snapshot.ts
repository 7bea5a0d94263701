import type { ApprovalRow, DecisionRow } from './core/approval.ts';
import { publicId } from './core/ids.ts';
import { toIso } from './core/job.ts';

/** An approval as it was at one moment, for back ends: public ids, RFC 3339 times. A plain object that does not change. */
export interface ApprovalSnapshot extends Omit<ApprovalRow, 'tenant' | 'run' | 'superseded' | 'submittedBy'> {
  /** All votes, the first one first. */
  decisions: Omit<DecisionRow, 'approvalId'>[];
}

export function approvalSnapshotOf(row: ApprovalRow, decisions: readonly DecisionRow[]): ApprovalSnapshot {
  return {
    id: publicId('Approval', row.id),
    jobId: publicId('Job', row.jobId),
    key: row.key,
    state: row.state,
    title: row.title,
    body: row.body,
    schema: row.schema,
    approvers: [...row.approvers],
    requiredApprovals: row.requiredApprovals,
    allowSubmitter: row.allowSubmitter,
    onExpire: row.onExpire,
    version: row.version,
    digest: row.digest,
    requestedAt: toIso(row.requestedAt),
    expiresAt: row.expiresAt && toIso(row.expiresAt),
    decidedAt: row.decidedAt && toIso(row.decidedAt),
    decidedBy: row.decidedBy,
    comment: row.comment,
    data: row.data,
    decisions: decisions.map(({ by, at, verdict, comment, data }) => ({ by, at: toIso(at), verdict, comment, data })),
  };
}
