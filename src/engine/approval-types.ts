import type { ApprovalRow, Verdict } from '../core/approval.ts';
import type { Caller } from './types.ts';

/** Which approval: by its own id, or the open one of a job (stored forms). `key` where a job has several. */
export type ApprovalSelector = { approvalId: string } | { jobId: string; key?: string | null };

export interface DecideRequest {
  comment?: string | null;
  /** Checked by the approval's schema. A rejection needs none, and none is checked. */
  data?: unknown;
  /** Of what the person was shown: a decision about something else is refused. */
  digest?: string | null;
}

export interface ApprovalsEngine {
  /**
   * One person's verdict. The same person's same verdict again is answered alike, whatever became of the approval.
   * @throws NotFound, NotWaiting (nothing is open), AlreadyDecided, StaleApproval, NotAllowed, InvalidInput
   */
  decide(caller: Caller, which: ApprovalSelector, verdict: Verdict, request?: DecideRequest): Promise<ApprovalRow>;
}
