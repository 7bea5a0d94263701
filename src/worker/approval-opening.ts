import { type ExpiryPolicy, MAX_APPROVAL } from '../core/approval.ts';
import { durationMs } from '../core/duration.ts';
import { NonRetryableError } from '../core/handler-errors.ts';
import { textProblem } from '../core/json.ts';
import { jsonSchemaOf } from '../core/standard-schema.ts';
import type { ApprovalOpening } from '../engine/types.ts';
import type { AnyApprovalOptions } from './wait-types.ts';

const POLICIES = new Map<unknown, ExpiryPolicy>([
  ['fail', 'FAIL'],
  ['reject', 'REJECT'],
  ['approve', 'APPROVE'],
]);

type Refuse = (rule: string) => never;

/**
 * What is to be opened. Handlers in plain JavaScript have nothing else that checks what they ask.
 * @throws NonRetryableError (code INVALID_OPTION) that names the option and its rule
 */
export function openingOf(key: string, o: AnyApprovalOptions): Omit<ApprovalOpening, 'jobId' | 'attempt'> {
  const bad: Refuse = (rule) => {
    throw new NonRetryableError(`approval ${JSON.stringify(key)}: ${rule}`, { code: 'INVALID_OPTION' });
  };
  if (typeof o !== 'object' || o === null) bad('the options must be an object with a title');
  text('title', o.title, MAX_APPROVAL.title, bad);
  if (o.title === '') bad('title must not be empty');
  if (o.body !== undefined) text('body', o.body, MAX_APPROVAL.body, bad);
  const approvers = approversOf(o.approvers ?? [], bad);
  const onExpire = POLICIES.get(o.onExpire ?? 'fail') ?? bad('onExpire must be "fail", "reject" or "approve"');
  if (o.onExpire !== undefined && o.expiresIn === undefined) bad('onExpire needs expiresIn');
  assertRest(o, bad);
  return {
    key,
    title: o.title,
    body: o.body ?? null,
    schema: jsonSchemaOf(o.schema, 'input'),
    approvers,
    requiredApprovals: requiredOf(o.requiredApprovals ?? 1, approvers, bad),
    allowSubmitter: o.allowSubmitter ?? true,
    onExpire,
    expiresInMs: o.expiresIn === undefined ? null : lengthOf(o.expiresIn, bad),
  };
}

function text(name: string, value: unknown, max: number, bad: Refuse): void {
  if (typeof value !== 'string' || value.length > max) bad(`${name} must be a text of at most ${max} characters`);
  const problem = textProblem(value as string);
  if (problem) bad(`${name} ${problem}`);
}

function approversOf(given: readonly unknown[], bad: Refuse): string[] {
  if (!Array.isArray(given)) bad('approvers must be a list of texts');
  const approvers = [...new Set(given)] as string[];
  if (approvers.length > MAX_APPROVAL.approvers) bad(`approvers must not be more than ${MAX_APPROVAL.approvers}`);
  for (const approver of approvers) {
    text('an approver', approver, MAX_APPROVAL.title, bad);
    if (approver.trim() === '') bad('an approver must not be empty');
  }
  return approvers;
}

function requiredOf(required: number, approvers: readonly string[], bad: Refuse): number {
  if (!Number.isInteger(required) || required < 1 || required > MAX_APPROVAL.required) {
    bad(`requiredApprovals must be an integer from 1 to ${MAX_APPROVAL.required}`);
  }
  if (approvers.length > 0 && !approvers.some((a) => a.startsWith('group:')) && required > approvers.length) {
    bad(`requiredApprovals is ${required}, but there are only ${approvers.length} approvers`);
  }
  return required;
}

function assertRest({ allowSubmitter, onReject, notify, schema }: AnyApprovalOptions, bad: Refuse): void {
  if (![undefined, true, false].includes(allowSubmitter)) bad('allowSubmitter must be true or false');
  if (![undefined, 'throw', 'return'].includes(onReject)) bad('onReject must be "throw" or "return"');
  if (notify !== undefined && typeof notify !== 'function') bad('notify must be a function');
  if (schema !== undefined && typeof schema?.['~standard']?.validate !== 'function') {
    bad('schema must be a Standard Schema');
  }
}

function lengthOf(expiresIn: string | number, bad: Refuse): number {
  try {
    return durationMs(expiresIn, 'expiresIn');
  } catch (error) {
    return bad((error as Error).message);
  }
}
