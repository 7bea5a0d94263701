import type { ApprovalState, ExpiryPolicy, Verdict } from '../core/approval.ts';
import type { JobState } from '../core/state.ts';

/** A question to people, with their decisions: the same names as its GraphQL type. */
export interface Approval {
  /** `apr_…` */
  id: string;
  /** Its name within the job. */
  key: string;
  job: { id: string; task: string; title: string; state: JobState };
  state: ApprovalState;
  title: string;
  /** Markdown. */
  body: string | null;
  /** JSON Schema of the data that an approver gives; null: none is asked for. */
  schema: unknown;
  /** Actors (`user:ada`) and groups (`group:editors`); empty: anybody with the right to decide. */
  approvers: string[];
  requiredApprovals: number;
  allowSubmitter: boolean;
  /** Whether whoever asks may decide now. */
  viewerCanDecide: boolean;
  requestedAt: string;
  expiresAt: string | null;
  onExpire: ExpiryPolicy;
  /** Grows with every change. */
  version: number;
  /** Of what is shown: a decision that quotes it is refused when that has changed. */
  digest: string;
  decidedAt: string | null;
  /** Whose vote decided, with its comment and its data. */
  decidedBy: string | null;
  comment: string | null;
  data: unknown;
  /** All votes, the first one first. */
  decisions: Decision[];
}

/** One person's vote. */
export interface Decision {
  by: string;
  at: string;
  verdict: Verdict;
  comment: string | null;
  data: unknown;
}

/** What may be said with a decision. */
export interface DecideOptions {
  /** With a job's id: which of its approvals. Needed where several are open. */
  key?: string;
  comment?: string;
  /** The form, filled in, as the approval's `schema` wants it. A rejection needs none. */
  data?: unknown;
  /** The approval's `digest` as it was shown: refused when that has changed. */
  digest?: string;
}

/** As the GraphQL type: fields AND, values of a list OR. */
export interface ApprovalFilter {
  /** Default: the open ones. */
  states?: readonly ApprovalState[];
  /** Only what whoever asks may decide now. */
  mine?: boolean;
  jobId?: string;
  graphId?: string;
  /** In which this actor has voted. */
  decidedBy?: string;
}

export interface ApprovalPage {
  first?: number;
  after?: string;
  /** Default: who waits longest comes first; of `mine` the most urgent one. */
  orderBy?: 'REQUESTED_ASC' | 'REQUESTED_DESC' | 'EXPIRES_ASC';
}
