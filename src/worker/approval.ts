import type { ApprovalAnswer } from '../core/approval.ts';
import { ApprovalRejectedError, NonRetryableError } from '../core/handler-errors.ts';
import { publicId } from '../core/ids.ts';
import { toIso } from '../core/job.ts';
import { type StandardSchemaV1, validateWith } from '../core/standard-schema.ts';
import { openingOf } from './approval-opening.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptWrites } from './attempt-writes.ts';
import { runStep } from './steps.ts';
import type { AnyApprovalOptions, Approved, Rejected } from './wait-types.ts';
import type { Waits } from './waits.ts';

export interface ApprovalCall {
  key: string;
  options: AnyApprovalOptions;
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
    const step = { key: `notify:${id}`, idempotencyKey: () => id, options: undefined };
    await runStep(step, () => notify({ id, url: `${publicUrl}/approvals/${id}`, expiresAt }), attempt, writes);
  }
  const answer = opened.state === 'OPEN' ? undefined : await writes.reread(key);
  if (answer) return answered(key, answer.data as ApprovalAnswer, options);
  return waits.park({ kind: 'REVIEW', approvalId: opened.id, title: opening.title });
}

async function answered(
  key: string,
  answer: ApprovalAnswer,
  { schema, onReject }: AnyApprovalOptions,
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
  const name = JSON.stringify(key);
  // The answer was granted by the form, so that a plain retry keeps it and fails alike.
  const advice = `retry the job from the checkpoint ${name} to ask again`;
  throw new NonRetryableError(`the data of approval ${name} is not what its schema wants (${advice}): ${issues}`, {
    code: 'INVALID_APPROVAL_DATA',
  });
}

function withDate<T extends { at: string }>(decision: T): Omit<T, 'at'> & { at: Date } {
  return { ...decision, at: new Date(decision.at) };
}
