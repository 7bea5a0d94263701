import { type Backoff, retryDelay } from '../core/backoff.ts';
import { durationMs, formatDuration, MAX_DURATION_MS } from '../core/duration.ts';
import {
  isAttemptAborted,
  isNonRetryable,
  isRetryLater,
  NonRetryableError,
  StepTimeoutError,
} from '../core/handler-errors.ts';
import { MAX_ATTEMPTS } from '../core/job.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptWrites } from './attempt-writes.ts';
import type { StepInfo, StepOptions } from './context.ts';
import { hasBrand } from './error-record.ts';
import { insideStep } from './inside-step.ts';
import { after, wait } from './timing.ts';

interface Limits {
  timeoutMs: number | null;
  maxAttempts: number;
  backoff: Backoff;
}

/** How a step is called, here and at outside services. */
interface Step {
  key: string;
  idempotencyKey(): string;
}

/** Runs one step that has no checkpoint yet, and saves what it gave. The caller has checked the key. */
export async function runStep<T>(
  step: Step & { options: StepOptions | undefined },
  fn: (s: StepInfo) => Promise<T> | T,
  attempt: Attempt,
  writes: AttemptWrites,
): Promise<unknown> {
  const limits = step.options === undefined ? null : parseLimits(step.key, step.options);
  // Awaited in every attempt: `fn` never begins before the call has returned.
  const earlier = await (writes.isFirst ? undefined : writes.earlierOf(step.key, 'STEP'));
  if (earlier) return earlier.data;
  const marked = (s: StepInfo): Promise<T> | T => insideStep(attempt, () => fn(s));
  const value = await (limits === null
    ? runOnce(step, marked, 1, null, attempt)
    : runWithRetry(step, marked, limits, attempt));
  const data = writes.jsonText(value, `step ${JSON.stringify(step.key)}`);
  return (await writes.save({ key: step.key, kind: 'STEP', data })).data;
}

/** Most steps ask for neither signal nor key, and both are dear to make. */
function infoOf(step: Step, attempt: number, signal: () => AbortSignal): StepInfo {
  return {
    attempt,
    get signal() {
      return signal();
    },
    get idempotencyKey() {
      return step.idempotencyKey();
    },
  };
}

async function runWithRetry<T>(
  step: Step,
  fn: (s: StepInfo) => Promise<T> | T,
  limits: Limits,
  attempt: Attempt,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await runOnce(step, fn, tries, limits.timeoutMs, attempt);
    } catch (error) {
      if (tries >= limits.maxAttempts || attempt.aborted || decided(error)) throw error;
    }
    await wait(retryDelay(limits.backoff, tries, Math.random()), attempt.signal);
    attempt.assertNotAborted();
  }
}

/** Errors that say what is to become of the whole attempt. */
function decided(error: unknown): boolean {
  return hasBrand(isNonRetryable, error) || hasBrand(isRetryLater, error) || hasBrand(isAttemptAborted, error);
}

/** One try; a promise only where `fn` gives one, or may take too long. */
function runOnce<T>(
  step: Step,
  fn: (s: StepInfo) => Promise<T> | T,
  tries: number,
  timeoutMs: number | null,
  attempt: Attempt,
): Promise<T> | T {
  attempt.assertWritable();
  if (timeoutMs === null) return fn(infoOf(step, tries, () => attempt.signal));
  return runInTime(step, fn, tries, timeoutMs, attempt);
}

/** Its own signal fires with the attempt's, or at the timeout; then what `fn` still gives is dropped. */
async function runInTime<T>(
  step: Step,
  fn: (s: StepInfo) => Promise<T> | T,
  tries: number,
  timeoutMs: number,
  attempt: Attempt,
): Promise<T> {
  // Not AbortSignal.any: on Node 20 each of them stays with the attempt's signal as long as that lives.
  const controller = new AbortController();
  const follow = (): void => controller.abort(attempt.signal.reason);
  if (attempt.signal.aborted) follow();
  else attempt.signal.addEventListener('abort', follow, { once: true });
  let prevent = (): void => {};
  const late = new Promise<never>((_, reject) => {
    prevent = after(timeoutMs, () => {
      const error = new StepTimeoutError(step.key, formatDuration(timeoutMs));
      reject(error);
      controller.abort(error);
    });
  });
  try {
    return await Promise.race([fn(infoOf(step, tries, () => controller.signal)), late]);
  } finally {
    prevent();
    attempt.signal.removeEventListener('abort', follow);
  }
}

function parseLimits(key: string, options: StepOptions): Limits {
  const { timeout, retry } = options;
  const of = `step ${JSON.stringify(key)}:`;
  try {
    const maxAttempts = retry === undefined ? 1 : (retry.maxAttempts ?? 3);
    const factor = retry?.factor ?? 2;
    if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > MAX_ATTEMPTS) {
      throw new TypeError(`${of} retry.maxAttempts must be an integer from 1 to ${MAX_ATTEMPTS}`);
    }
    if (!(factor >= 1 && factor <= 100)) throw new TypeError(`${of} retry.factor must be from 1 to 100`);
    return {
      timeoutMs: timeout === undefined ? null : durationMs(timeout, `${of} timeout`),
      maxAttempts,
      backoff: {
        type: 'exponential',
        delayMs: durationMs(retry?.delay ?? '1s', `${of} retry.delay`),
        factor,
        maxMs: retry?.max === undefined ? MAX_DURATION_MS : durationMs(retry.max, `${of} retry.max`),
        jitter: 0.1,
      },
    };
  } catch (error) {
    throw new NonRetryableError((error as Error).message, { code: 'INVALID_OPTION', cause: error });
  }
}
