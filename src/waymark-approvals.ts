import { type ApprovalSnapshot, approvalSnapshotOf } from './approval-snapshot.ts';
import { ACTOR_RULE, isActor } from './core/actor.ts';
import type { Verdict } from './core/approval.ts';
import { InvalidInput, NotFound } from './core/errors.ts';
import { parseId, publicId } from './core/ids.ts';
import { decisionsOf } from './db/reads/approvals.ts';
import { jobById } from './db/reads/job-row.ts';
import type { Database } from './db/types.ts';
import type { ApprovalsEngine } from './engine/approval-types.ts';
import type { Caller } from './engine/types.ts';
import { type JobSnapshot, snapshotOf } from './job-snapshot.ts';

/** What a back end may say with a decision. */
export interface DecideOptions {
  /** With a job's id: which of its approvals. Needed where several are open. */
  key?: string;
  comment?: string;
  /** The form, filled in, as the approval's schema wants it. A rejection needs none. */
  data?: unknown;
  /** The approval's `digest` as it was shown: refused when that has changed. */
  digest?: string;
  /** Who decides: `user:ada`. Default: the back end's own actor. */
  as?: string;
  /** Groups that this person is in, for approvals that name `group:editors`. Default none. */
  groups?: readonly string[];
}

/** What came of a decision. */
export interface DecideResult {
  approval: ApprovalSnapshot;
  /** After it. */
  job: JobSnapshot;
}

/** The part of a back end about approvals. */
export interface WaymarkApprovals {
  /**
   * Says yes to what a job asks, for the person that `as` names; the job goes on when enough different people have. `id`:
   * the approval's (`apr_…`), or the job's. A second call for the same person answers alike.
   * @throws InvalidId, NotFound, NotWaiting, AlreadyDecided, StaleApproval, NotAllowed, InvalidInput (the form, a `key`
   *   that is needed, or an `as` that is no actor)
   */
  approve(id: string, options?: DecideOptions): Promise<DecideResult>;
  /** Says no, which decides at once. @throws as `approve` */
  reject(id: string, options?: DecideOptions): Promise<DecideResult>;
}

export function createWaymarkApprovals(
  approvals: ApprovalsEngine,
  database: Database,
  caller: Caller,
): WaymarkApprovals {
  async function decide(id: string, verdict: Verdict, options: DecideOptions): Promise<DecideResult> {
    const { key = null, as: actor = caller.actor, groups, ...said } = options;
    // A group that names itself would be taken for the person whom an approval asks.
    if (!isActor(actor)) throw new InvalidInput([{ path: 'as', message: ACTOR_RULE }]);
    const isApproval = id.startsWith('apr_');
    const which = isApproval ? { approvalId: parseId('Approval', id) } : { jobId: parseId('Job', id), key };
    const person = { tenant: caller.tenant, actor, ...(groups ? { groups } : {}) };
    const row = await approvals.decide(person, which, verdict, said);
    const [job, votes] = await Promise.all([
      jobById(database.submit, caller.tenant, row.jobId),
      decisionsOf(database.submit, [row.id]),
    ]);
    if (!job) throw new NotFound('job', publicId('Job', row.jobId));
    return { approval: approvalSnapshotOf(row, votes), job: snapshotOf(job) };
  }

  return {
    approve: (id, options = {}) => decide(id, 'APPROVED', options),
    reject: (id, options = {}) => decide(id, 'REJECTED', options),
  };
}
