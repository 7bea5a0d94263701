import { jsonDigest } from './json.ts';

export const APPROVAL_STATES = ['OPEN', 'APPROVED', 'REJECTED', 'EXPIRED', 'WITHDRAWN'] as const;
export type ApprovalState = (typeof APPROVAL_STATES)[number];

/** What happens to the job when nobody decided in time. */
export const EXPIRY_POLICIES = ['FAIL', 'REJECT', 'APPROVE'] as const;
export type ExpiryPolicy = (typeof EXPIRY_POLICIES)[number];

export const VERDICTS = ['APPROVED', 'REJECTED'] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Who an expiry is said to be decided by. */
export const EXPIRY_ACTOR = 'system:expiry';

/** Longest texts and lists of an approval. */
export const MAX_APPROVAL = { title: 200, body: 50_000, approvers: 100, comment: 2_000, required: 100 } as const;

/** A question to people, as stored. Ids in stored form. */
export interface ApprovalRow {
  /** `apr_…` where it is shown. */
  id: string;
  tenant: string;
  /** `job_…` where it is shown. */
  jobId: string;
  run: number;
  /** Its name within the job. */
  key: string;
  state: ApprovalState;
  /** A later run asks again. */
  superseded: boolean;
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
  /** Who submitted its job. */
  submittedBy: string;
}

/** One person's vote. */
export interface DecisionRow {
  approvalId: string;
  by: string;
  at: string;
  verdict: Verdict;
  comment: string | null;
  data: unknown;
}

/** What an approver is shown: what a decision quotes by its digest. */
export interface ShownApproval {
  title: string;
  body: string | null;
  schema: unknown;
  approvers: readonly string[];
  requiredApprovals: number;
  allowSubmitter: boolean;
  onExpire: ExpiryPolicy;
}

/** sha256 of what an approver is shown. */
export function approvalDigest(shown: ShownApproval): string {
  const { title, body, schema, approvers, requiredApprovals, allowSubmitter, onExpire } = shown;
  return jsonDigest({ title, body, schema, approvers: [...approvers], requiredApprovals, allowSubmitter, onExpire });
}

/** Why this person may not decide, or null. An entry of `approvers` is an actor (`user:ada`) or a group (`group:editors`). */
export function decideProblem(
  approval: Pick<ApprovalRow, 'approvers' | 'allowSubmitter' | 'submittedBy'>,
  person: { actor: string; groups: readonly string[] },
): string | null {
  if (!approval.allowSubmitter && person.actor === approval.submittedBy) {
    return `${person.actor} submitted the job and may not decide about it`;
  }
  const mine = new Set([person.actor, ...person.groups.map((g) => (g.startsWith('group:') ? g : `group:${g}`))]);
  if (approval.approvers.length === 0 || approval.approvers.some((a) => mine.has(a))) return null;
  return `${person.actor} is not among the approvers`;
}

/** What the handler gets of a decided approval, as its checkpoint holds it. `EXPIRED`: by `onExpire: "fail"`. */
export interface ApprovalAnswer {
  decision: Verdict | 'EXPIRED';
  expired: boolean;
  data: unknown;
  comment: string | null;
  by: string;
  /** RFC 3339. */
  at: string;
  decisions: { by: string; at: string; verdict: Verdict; comment: string | null; data: unknown }[];
}
