import {
  type ApprovalAnswer,
  type ApprovalRow,
  type DecisionRow,
  decideProblem,
  EXPIRY_ACTOR,
  MAX_APPROVAL,
  type Verdict,
} from '../core/approval.ts';
import { AlreadyDecided, InvalidInput, NotAllowed, NotFound, NotWaiting, StaleApproval } from '../core/errors.ts';
import { publicId } from '../core/ids.ts';
import { toIso } from '../core/job.ts';
import { type JsonValue, jsonBytes, jsonIssues, textProblem } from '../core/json.ts';
import { isTerminal } from '../core/state.ts';
import type { ChangeRow } from '../db/changes.ts';
import { approvalsByIds, approvalsOfJobs, decisionsOf } from '../db/reads/approvals.ts';
import { jobById } from '../db/reads/job-row.ts';
import { closeApproval, dueApprovals, lockForDecision, noteVote, recordVote } from '../db/transitions/decide.ts';
import type { Database, Tx } from '../db/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import type { ApprovalSelector, ApprovalsEngine, DecideRequest } from './approval-types.ts';
import { announce } from './commit.ts';
import { createJsonSchemaChecker } from './json-schema.ts';
import type { Caller, EngineOptions } from './types.ts';

type Options = Pick<EngineOptions, 'priorityStepMs' | 'maxBytes'>;

export function createApprovals(database: Database, channel: LiveChannel, options: Options): ApprovalsEngine {
  const db = database.submit;
  const schemas = createJsonSchemaChecker();

  async function find(caller: Caller, which: ApprovalSelector): Promise<ApprovalRow> {
    if ('approvalId' in which) {
      const [approval] = await approvalsByIds(db, caller.tenant, [which.approvalId]);
      if (!approval) throw new NotFound('approval', publicId('Approval', which.approvalId));
      return approval;
    }
    const { jobId, key = null } = which;
    const job = await jobById(db, caller.tenant, jobId);
    if (!job) throw new NotFound('job', publicId('Job', jobId));
    const all = (await approvalsOfJobs(db, caller.tenant, [jobId])).filter((a) => !a.superseded);
    const open = all.filter((a) => a.state === 'OPEN');
    if (key !== null) {
      const named = all.find((a) => a.key === key);
      if (named) return named;
      if (open.length === 0) throw new NotWaiting(jobId, 'the job waits for no approval');
      throw new InvalidInput([{ path: 'key', message: `names no approval of the job; open ones: ${names(open)}` }]);
    }
    if (open.length > 1) {
      throw new InvalidInput([{ path: 'key', message: `is needed where several are open: ${names(open)}` }]);
    }
    // Somebody may have been faster: the newest one says what was decided.
    const one = open[0] ?? all.at(-1);
    if (!one) throw new NotWaiting(jobId, 'the job waits for no approval');
    return one;
  }

  async function decideIn(
    tx: Tx,
    caller: Caller,
    approvalId: string,
    jobId: string,
    verdict: Verdict,
    request: DecideRequest,
  ): Promise<ChangeRow[]> {
    const locked = await lockForDecision(tx, { approvalId, jobId }, true);
    if (locked === null) throw new NotFound('approval', publicId('Approval', approvalId));
    const { approval, jobState } = locked;
    const votes = await decisionsOf(tx, [approvalId]);
    const mine = votes.find((v) => v.by === caller.actor);
    if (mine?.verdict === verdict) return [];
    if (mine) throw new AlreadyDecided(approvalId, `${caller.actor} has ${said(mine.verdict)} it already`);
    if (approval.state === 'WITHDRAWN' || (approval.state === 'OPEN' && isTerminal(jobState))) {
      throw new NotWaiting(jobId, `approval ${approval.key} is withdrawn: the job does not wait for it any more`);
    }
    if (approval.state !== 'OPEN') {
      const by = approval.decidedBy === null ? '' : ` by ${approval.decidedBy}`;
      throw new AlreadyDecided(approvalId, `approval ${approval.key} is ${approval.state}${by}`);
    }
    const problem = decideProblem(approval, { actor: caller.actor, groups: caller.groups ?? [] });
    if (problem !== null) throw new NotAllowed(problem);
    if (request.digest != null && request.digest !== approval.digest) throw new StaleApproval(approvalId);
    const data = verdict === 'APPROVED' ? request.data : undefined;
    if (verdict === 'APPROVED') checkData(approval, data);
    const comment = request.comment ?? null;
    const stored = data === undefined ? null : JSON.stringify(data);
    const { at } = await recordVote(tx, { approvalId, actor: caller.actor, verdict, comment, data: stored });
    const vote: DecisionRow = { approvalId, by: caller.actor, at, verdict, comment, data: data ?? null };
    const all = [...votes, vote];
    const decided = verdict === 'REJECTED' || all.length >= approval.requiredApprovals;
    const event = eventOf(approval, vote, decided ? verdict : 'OPEN');
    if (!decided) return noteVote(tx, { jobId, approvalId, actor: caller.actor, event });
    const answer = answerOf(verdict, vote, all, false);
    return closeApproval(tx, {
      jobId,
      approvalId,
      state: verdict,
      answer,
      event,
      priorityStepMs: options.priorityStepMs,
    });
  }

  function checkData(approval: ApprovalRow, data: unknown): void {
    const issues = data === undefined ? [] : jsonIssues(data, 'data');
    // The answer is a checkpoint of the job.
    const bytes = data === undefined || issues.length > 0 ? 0 : jsonBytes(JSON.stringify(data));
    const limit = options.maxBytes.checkpoint;
    if (bytes > limit) issues.push({ path: 'data', message: `has ${bytes} bytes as JSON; the limit is ${limit}` });
    if (issues.length > 0) throw new InvalidInput(issues);
    if (approval.schema === null) return;
    const found = schemas.issues(approval.schema as JsonValue, data === undefined ? null : data, 'data');
    if (found.length === 0) return;
    throw new InvalidInput(data === undefined ? [{ path: 'data', message: 'is required' }] : found);
  }

  return {
    async decide(caller, which, verdict, request = {}) {
      checkComment(request.comment ?? null);
      const { id, jobId } = await find(caller, which);
      const rows = await db.transaction((tx) => decideIn(tx, caller, id, jobId, verdict, request));
      announce(channel, rows);
      const [approval] = await approvalsByIds(db, caller.tenant, [id]);
      if (!approval) throw new NotFound('approval', publicId('Approval', id));
      return approval;
    },
  };
}

/**
 * Ends up to `limit` approvals whose time is over, each in a transaction of its own; a job that somebody holds is left to
 * the next pass. Returns how many it ended.
 */
export async function expireApprovals(
  database: Database,
  channel: LiveChannel,
  options: Options,
  limit: number,
): Promise<number> {
  const db = database.maintenance;
  let expired = 0;
  for (const ids of await dueApprovals(db, limit)) {
    const rows = await db.transaction(async (tx) => {
      const locked = await lockForDecision(tx, ids, false);
      if (locked === null || locked.approval.state !== 'OPEN' || isTerminal(locked.jobState)) return [];
      const { approval } = locked;
      const votes = await decisionsOf(tx, [approval.id]);
      const verdict: Verdict = approval.onExpire === 'APPROVE' ? 'APPROVED' : 'REJECTED';
      const at = approval.expiresAt ?? approval.requestedAt;
      const vote = { approvalId: approval.id, by: EXPIRY_ACTOR, at, verdict, comment: null, data: null };
      const decision = approval.onExpire === 'FAIL' ? 'EXPIRED' : verdict;
      return closeApproval(tx, {
        jobId: approval.jobId,
        approvalId: approval.id,
        state: 'EXPIRED',
        answer: { ...answerOf(verdict, vote, votes, true), decision },
        event: eventOf(approval, vote, 'EXPIRED'),
        priorityStepMs: options.priorityStepMs,
      });
    });
    announce(channel, rows);
    if (rows.length > 0) expired++;
  }
  return expired;
}

function answerOf(
  verdict: Verdict,
  last: DecisionRow,
  votes: readonly DecisionRow[],
  expired: boolean,
): ApprovalAnswer {
  return {
    decision: verdict,
    expired,
    data: last.data,
    comment: last.comment,
    by: last.by,
    at: toIso(last.at),
    decisions: votes.map(({ by, at, verdict, comment, data }) => ({ by, at: toIso(at), verdict, comment, data })),
  };
}

function eventOf({ id, key }: ApprovalRow, { by, at, verdict, comment, data }: DecisionRow, approvalState: string) {
  return { key, approvalId: id, approvalState, decision: { by, at: toIso(at), verdict, comment, data } };
}

const names = (approvals: readonly ApprovalRow[]) => approvals.map((a) => a.key).join(', ');
const said = (verdict: Verdict) => (verdict === 'APPROVED' ? 'approved' : 'rejected');

function checkComment(comment: string | null): void {
  if (comment === null) return;
  const { comment: max } = MAX_APPROVAL;
  const problem = comment.length > max ? `must not be longer than ${max} characters` : textProblem(comment);
  if (problem) throw new InvalidInput([{ path: 'comment', message: problem }]);
}
