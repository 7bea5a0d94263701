import type { ApprovalRow, ApprovalState, DecisionRow, ExpiryPolicy, Verdict } from './core/approval.ts';
import { publicId } from './core/ids.ts';
import { toIso } from './core/job.ts';

/** An approval as it was at one moment, for back ends: public ids, RFC 3339 times. A plain object that does not change. */
export interface ApprovalSnapshot {
  /** `apr_…` */
  id: string;
  /** `job_…` */
  jobId: string;
  /** Its name within the job. */
  key: string;
  state: ApprovalState;
  title: string;
  /** Markdown. */
  body: string | null;
  /** JSON Schema of the data that an approver gives; null: none is asked for. */
  schema: unknown;
  approvers: string[];
  requiredApprovals: number;
  allowSubmitter: boolean;
  onExpire: ExpiryPolicy;
  version: number;
  /** Of what is shown: a decision that quotes it is refused when that has changed. */
  digest: string;
  requestedAt: string;
  expiresAt: string | null;
  decidedAt: string | null;
  /** Whose vote decided, with its comment and its data. */
  decidedBy: string | null;
  comment: string | null;
  data: unknown;
  /** All votes, the first one first. */
  decisions: { by: string; at: string; verdict: Verdict; comment: string | null; data: unknown }[];
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
