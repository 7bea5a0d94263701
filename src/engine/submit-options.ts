import { type BackoffOptions, parseBackoff } from '../core/backoff.ts';
import { durationMs } from '../core/duration.ts';
import { parseId } from '../core/ids.ts';
import type { DependencyPolicy } from '../core/job.ts';
import { type AnyTask, isTask } from '../core/task.ts';
import type { SubmitRequest } from './types.ts';

/** What a back end may say about a job at submit. What is left out comes from the task. */
export interface SubmitJobOptions {
  /** The same key and input give the same job; the same key with another input is an IdempotencyConflict. */
  idempotencyKey?: string;
  /** `UNTIL_FINISHED` frees the key when the job ends. Default `RETENTION`. */
  keyScope?: 'RETENTION' | 'UNTIL_FINISHED';
  /** What people see. Default: the task's name. */
  title?: string;
  queue?: string;
  /** −100…100. */
  priority?: number;
  tags?: readonly string[];
  /** Not before this moment; exclusive with `delay`. */
  runAt?: Date | string;
  /** Not before this much time has passed: `"10m"`, or milliseconds. */
  delay?: string | number;
  maxAttempts?: number;
  /** Longest duration of one attempt. */
  timeout?: string | number;
  backoff?: BackoffOptions;
  /** Jobs of one key run one after the other. */
  concurrencyKey?: string;
  /**
   * Jobs (by id) that go before this one. `policy` says what an upstream job that does not complete does to it: CANCEL (the
   * default), FAIL, or CONTINUE.
   */
  dependsOn?: readonly (string | { jobId: string; policy?: DependencyPolicy })[];
  /** The caller's own open transaction: of Drizzle, or of postgres.js. */
  tx?: unknown;
}

/** A submit in the engine's terms. @throws TypeError that names the option and its rule, InvalidId */
export function submitRequest(
  task: AnyTask | string,
  input: unknown,
  options: Omit<SubmitJobOptions, 'tx'>,
): SubmitRequest {
  if (typeof task !== 'string' && !isTask(task)) throw new TypeError('task must be made by defineTask, or be its name');
  const { runAt, delay, timeout, backoff, tags, dependsOn, ...rest } = options;
  return {
    ...rest,
    task: typeof task === 'string' ? task : task.name,
    ...(input === undefined ? {} : { input }),
    ...(tags === undefined ? {} : { tags: [...tags] }),
    ...(runAt === undefined ? {} : { runAt: runAt instanceof Date ? runAt.toISOString() : runAt }),
    ...(delay === undefined ? {} : { delayMs: durationMs(delay, 'delay') }),
    ...(timeout === undefined ? {} : { timeoutMs: durationMs(timeout, 'timeout') }),
    ...(dependsOn === undefined ? {} : { dependsOn: dependsOn.map(upstreamOf) }),
    ...(backoff === undefined ? {} : { backoff: parseBackoff(backoff) }),
  };
}

function upstreamOf(given: string | { jobId: string; policy?: DependencyPolicy }, i: number) {
  const { jobId, policy } = typeof given === 'string' ? { jobId: given } : given;
  return { jobId: parseId('Job', jobId, `dependsOn[${i}]`), policy: policy ?? null };
}
