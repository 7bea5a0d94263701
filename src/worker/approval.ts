import { type ApprovalAnswer, type ExpiryPolicy, MAX_APPROVAL } from '../core/approval.ts';
import { durationMs } from '../core/duration.ts';
import { ApprovalRejectedError, NonRetryableError } from '../core/handler-errors.ts';
import { publicId } from '../core/ids.ts';
import { toIso } from '../core/job.ts';
import { textProblem } from '../core/json.ts';
import { jsonSchemaOf, type StandardSchemaV1, validateWith } from '../core/standard-schema.ts';
import type { ApprovalOpening } from '../engine/types.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptWrites } from './attempt-writes.ts';
import { runStep } from './steps.ts';
import type { ApprovalOptions, Approved, Rejected } from './wait-types.ts';
import type { Waits } from './waits.ts';

export interface ApprovalCall {
  key: string;
  options: ApprovalOptions<StandardSchemaV1 | undefined, 'fail' | 'reject' | 'approve', 'throw' | 'return'>;
  publicUrl: string;
}

/** Gives the answer, or asks and suspends the attempt. The caller has checked the key. */
export async function askForApproval(
  { key, options, publicUrl }: ApprovalCall,
  attempt: Attempt,
  writes: AttemptWrites,
  waits: Waits,
): Promise<Approved<unknown> | Rejected> {
  const opening = openingOf(key, options);
  const earlier = await writes.earlierOf(key, 'APPROVAL');
  if (earlier) return answered(key, earlier.data as ApprovalAnswer, options);
  const opened = await writes.openApproval(opening);
  const { notify } = options;
  if (notify && opened.state === 'OPEN') {
    const id = publicId('Approval', opened.id);
    const expiresAt = opened.expiresAt === null ? null : new Date(toIso(opened.expiresAt));
    // By its id: a retry opens another approval of the same key, and people are to be told of that, too.
    const step = { key: `notify:${id}`, idempotencyKey: id, options: undefined };
    await runStep(step, () => notify({ id, url: `${publicUrl}/approvals/${id}`, expiresAt }), attempt, writes);
  }
  const answer = opened.state === 'OPEN' ? undefined : await writes.reread(key);
  if (answer) return answered(key, answer.data as ApprovalAnswer, options);
  return waits.park({ kind: 'REVIEW', approvalId: opened.id, title: opening.title });
}

async function answered(
  key: string,
  answer: ApprovalAnswer,
  { schema, onReject }: ApprovalCall['options'],
): Promise<Approved<unknown> | Rejected> {
  const { decision, expired, comment, by } = answer;
  const more = { expired, comment, by, at: new Date(answer.at), decisions: answer.decisions.map(withDate) };
  switch (decision) {
    case 'EXPIRED':
      throw new NonRetryableError(`approval ${JSON.stringify(key)} was not decided in time`, {
        code: 'APPROVAL_EXPIRED',
      });
    case 'REJECTED':
      if (onReject === 'return') return { decision, data: null, ...more };
      throw new ApprovalRejectedError(key, by, comment);
    case 'APPROVED':
      return { decision, data: expired ? null : await parsed(key, schema, answer.data), ...more };
  }
}

async function parsed(key: string, schema: StandardSchemaV1 | undefined, data: unknown): Promise<unknown> {
  if (schema === undefined) return data;
  const result = await validateWith(schema, data ?? undefined, 'data');
  if (result.ok) return result.value;
  const issues = result.issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ');
  throw new NonRetryableError(`the data of approval ${JSON.stringify(key)} is not what its schema wants: ${issues}`, {
    code: 'INVALID_APPROVAL_DATA',
  });
}

function withDate<T extends { at: string }>(decision: T): Omit<T, 'at'> & { at: Date } {
  return { ...decision, at: new Date(decision.at) };
}

const POLICIES: Record<string, ExpiryPolicy> = { fail: 'FAIL', reject: 'REJECT', approve: 'APPROVE' };

/** @throws NonRetryableError (code INVALID_OPTION) that names the option and its rule */
function openingOf(key: string, o: ApprovalCall['options']): Omit<ApprovalOpening, 'jobId' | 'attempt'> {
  const bad = (rule: string): never => {
    throw new NonRetryableError(`approval ${JSON.stringify(key)}: ${rule}`, { code: 'INVALID_OPTION' });
  };
  const text = (name: string, value: unknown, max: number): void => {
    if (typeof value !== 'string' || value.length > max) bad(`${name} must be a text of at most ${max} characters`);
    const problem = textProblem(value as string);
    if (problem) bad(`${name} ${problem}`);
  };
  text('title', o.title, MAX_APPROVAL.title);
  if (o.title === '') bad('title must not be empty');
  if (o.body !== undefined) text('body', o.body, MAX_APPROVAL.body);
  const approvers = [...new Set(o.approvers ?? [])];
  if (approvers.length > MAX_APPROVAL.approvers) bad(`approvers must not be more than ${MAX_APPROVAL.approvers}`);
  for (const approver of approvers) text('an approver', approver, MAX_APPROVAL.title);
  const required = o.requiredApprovals ?? 1;
  if (!Number.isInteger(required) || required < 1 || required > MAX_APPROVAL.required) {
    bad(`requiredApprovals must be an integer from 1 to ${MAX_APPROVAL.required}`);
  }
  if (approvers.length > 0 && !approvers.some((a) => a.startsWith('group:')) && required > approvers.length) {
    bad(`requiredApprovals is ${required}, but there are only ${approvers.length} approvers`);
  }
  const onExpire = POLICIES[o.onExpire ?? 'fail'] ?? bad('onExpire must be "fail", "reject" or "approve"');
  if (o.onExpire !== undefined && o.expiresIn === undefined) bad('onExpire needs expiresIn');
  let expiresInMs: number | null = null;
  try {
    if (o.expiresIn !== undefined) expiresInMs = durationMs(o.expiresIn, 'expiresIn');
  } catch (error) {
    bad((error as Error).message);
  }
  return {
    key,
    title: o.title,
    body: o.body ?? null,
    schema: jsonSchemaOf(o.schema, 'input'),
    approvers,
    requiredApprovals: required,
    allowSubmitter: o.allowSubmitter ?? true,
    onExpire: onExpire as ExpiryPolicy,
    expiresInMs,
  };
}
