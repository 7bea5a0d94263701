import { type Backoff, parseBackoff } from '../core/backoff.ts';
import { MAX_UPSTREAMS } from '../core/dependency.ts';
import { InvalidInput } from '../core/errors.ts';
import { parseId } from '../core/ids.ts';
import type { SubmitRequest } from '../engine/types.ts';
import { builder } from './builder.ts';
import { BackoffTypeEnum, DependencyPolicyEnum, KeyScopeEnum } from './enums.ts';

const BackoffInput = builder.inputType('BackoffInput', {
  description: 'How long a failed job waits before its next attempt.',
  fields: (t) => ({
    type: t.field({ type: BackoffTypeEnum, required: true, description: 'How the waits grow.' }),
    delay: t.field({ type: 'Duration', required: true, description: 'Wait before the first retry.' }),
    factor: t.float({ defaultValue: 2, description: 'EXPONENTIAL: what the wait is multiplied by each time, 1…100.' }),
    max: t.field({ type: 'Duration', description: 'Longest wait, before jitter. Default: no limit.' }),
    jitter: t.float({ defaultValue: 0.2, description: 'Share of the wait that is random, 0…1: 0.2 is ±20 %.' }),
  }),
});

const DependencyInput = builder.inputType('DependencyInput', {
  description: 'A job that goes first.',
  fields: (t) => ({
    jobId: t.id({ required: true, description: 'The job; one that the caller has not is NotFound.' }),
    policy: t.field({
      type: DependencyPolicyEnum,
      defaultValue: 'CANCEL',
      description: 'What becomes of the new job when that one does not complete.',
    }),
  }),
});

export const SubmitJobInput = builder.inputType('SubmitJobInput', {
  description: 'A job to be done. What is left out is as its task says.',
  fields: (t) => ({
    task: t.string({ required: true, description: 'Name of a registered task.' }),
    input: t.field({
      type: 'JSON',
      description: 'What the handler is given, by the task’s input schema. Left out: it is given nothing.',
    }),
    title: t.string({ description: 'For people, at most 200 characters. Default: the task’s name.' }),
    idempotencyKey: t.string({
      description:
        'Makes the call safe to repeat: the same key and input give the same job, `deduplicated`; another input is IdempotencyConflict. At most 200 characters, unique per task.',
    }),
    queue: t.string({ description: 'The line to stand in.' }),
    priority: t.int({ description: '−100…100; higher goes first.' }),
    tags: t.stringList({ description: 'At most 20, to be found by.' }),
    runAt: t.field({ type: 'DateTime', description: 'Not before then; in the past means now. Not with `delay`.' }),
    delay: t.field({ type: 'Duration', description: 'Not before this time has passed. Not with `runAt`.' }),
    maxAttempts: t.int({ description: 'Budget of attempts, 1…1000.' }),
    timeout: t.field({ type: 'Duration', description: 'Longest time of one attempt.' }),
    dependsOn: t.field({
      type: [DependencyInput],
      description: `Jobs that go first, at most ${MAX_UPSTREAMS}, each once: until they are done this one is DEFERRED. What has been done already holds nothing up. In a graph: jobs outside of it.`,
    }),
    concurrencyKey: t.string({ description: 'Of jobs with the same key one at a time is run.' }),
    backoff: t.field({ type: BackoffInput, description: 'Waits between attempts.' }),
    keyScope: t.field({
      type: KeyScopeEnum,
      defaultValue: 'RETENTION',
      description: 'How long the idempotency key stands for this job.',
    }),
  }),
});

type Given = typeof SubmitJobInput.$inferInput;

/**
 * The request in stored units.
 * @param path prefix of paths in errors: `inputs[17]`, or undefined for a single submit
 * @throws InvalidInput, BAD_USER_INPUT for an id that is none
 */
export function toSubmitRequest(given: Given, path?: string): SubmitRequest {
  const { backoff, delay, timeout, dependsOn, ...rest } = given;
  return {
    ...rest,
    delayMs: delay ?? null,
    timeoutMs: timeout ?? null,
    backoff: backoff ? toBackoff(backoff, path) : null,
    dependsOn:
      dependsOn?.map(({ jobId, policy }, i) => ({
        jobId: parseId('Job', jobId, `${path ?? 'input'}.dependsOn[${i}].jobId`),
        policy: policy ?? null,
      })) ?? null,
  };
}

function toBackoff(given: typeof BackoffInput.$inferInput, path: string | undefined): Backoff {
  try {
    return parseBackoff({
      type: given.type === 'FIXED' ? 'fixed' : 'exponential',
      delay: given.delay,
      factor: given.factor ?? 2,
      ...(given.max == null ? {} : { max: given.max }),
      jitter: given.jitter ?? 0.2,
    });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // Its messages begin with the name of the option.
    const [option = 'backoff', ...rule] = error.message.split(' ');
    const at = path ? `${path}.${option}` : option;
    throw new InvalidInput([{ path: at, message: rule.join(' ') }], path ? { path } : undefined);
  }
}
