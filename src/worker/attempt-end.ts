import { retryDelay } from '../core/backoff.ts';
import { durationMs, formatDuration } from '../core/duration.ts';
import type { JobErrorData } from '../core/event.ts';
import { type AbortKind, isAttemptAborted, isRetryLater, type RetryLater } from '../core/handler-errors.ts';
import { publicId } from '../core/ids.ts';
import { MAX_TEXT } from '../core/job.ts';
import { jsonDigest, storableText } from '../core/json.ts';
import type { AttemptEnd, SuspendWait } from '../engine/types.ts';
import type { Attempt } from './attempt.ts';
import { errorRecord, errorText, hasBrand, type OwnErrorCode, ownErrorRecord } from './error-record.ts';
import { fromJsonText, toJsonText } from './to-json.ts';

/** What a handler did. `value` and `refused`: after its input and output were checked by the task's schemas. */
export type Ending =
  | { kind: 'returned'; value: unknown }
  | { kind: 'threw'; error: unknown }
  | { kind: 'refused'; code: OwnErrorCode; message: string }
  /** It waits, and holds nothing meanwhile. */
  | { kind: 'suspended'; wait: SuspendWait }
  /** It ended in a thread of its own, where this was made of it; null: it lost its job. */
  | { kind: 'recorded'; end: AttemptEnd | null };

/**
 * How the attempt is recorded, or null when nothing may be: the job is no longer its own.
 * A handler that returned has won, whatever it was told meanwhile; one that threw after an abort ends as the abort says.
 */
export function endOfAttempt(attempt: Attempt, ending: Ending, maxResultBytes: number): AttemptEnd | null {
  if (attempt.lost) return null;
  switch (ending.kind) {
    case 'returned':
      return endOfReturn(attempt, ending.value, maxResultBytes);
    case 'refused':
      return failed(attempt, ownErrorRecord(ending.code, ending.message, attempt.job.attempt, new Date()));
    case 'suspended':
      return { ...idsOf(attempt), outcome: 'SUSPENDED', wait: ending.wait };
    case 'recorded':
      return ending.end;
    case 'threw':
      return endOfThrow(attempt, ending.error);
  }
}

/** How an attempt is recorded whose handler did not end in time. Null when it lost its job. */
export function endOfGivenUp(attempt: Attempt): AttemptEnd | null {
  if (attempt.lost || attempt.abortKind === null) return null;
  if (attempt.abortKind === 'cancel') return { ...idsOf(attempt), outcome: 'CANCELED', forced: true };
  const worker = publicId('Worker', attempt.workerId);
  const still =
    attempt.task.isolation === 'thread'
      ? `its handler did not stop and was ended together with its thread on worker ${worker}`
      : `its handler did not stop and may still be running on worker ${worker}`;
  return endOfAbort(attempt, attempt.abortKind, still);
}

function endOfReturn(attempt: Attempt, value: unknown, maxResultBytes: number): AttemptEnd {
  const { id, attempt: number } = attempt.job;
  if (value === undefined) {
    return { jobId: id, attempt: number, outcome: 'SUCCEEDED', result: null, resultDigest: null };
  }
  const json = toJsonText(value, 'result', maxResultBytes);
  if (!json.ok) {
    const code = json.problem === 'too-large' ? 'RESULT_TOO_LARGE' : 'RESULT_NOT_JSON';
    return failed(attempt, ownErrorRecord(code, json.message, number, new Date()));
  }
  const resultDigest = jsonDigest(fromJsonText(json.text));
  return { jobId: id, attempt: number, outcome: 'SUCCEEDED', result: json.text, resultDigest };
}

function endOfThrow(attempt: Attempt, error: unknown): AttemptEnd {
  if (attempt.abortKind !== null) return endOfAbort(attempt, attempt.abortKind, afterwards(error));
  if (hasBrand(isAttemptAborted, error)) {
    // Not told by us: the handler says itself how it wants to end. Loss is not its to declare.
    if (error.kind === 'cancel' || error.kind === 'timeout' || error.kind === 'shutdown') {
      return endOfAbort(attempt, error.kind, null);
    }
  }
  if (hasBrand(isRetryLater, error)) return postponed(attempt, error);
  return failed(attempt, errorRecord(error, attempt.job.attempt, new Date()));
}

function endOfAbort(attempt: Attempt, kind: AbortKind, more: string | null): AttemptEnd {
  switch (kind) {
    case 'cancel':
      return { ...idsOf(attempt), outcome: 'CANCELED' };
    case 'shutdown':
      return { ...idsOf(attempt), outcome: 'RELEASED' };
    case 'timeout': {
      const limit = attempt.job.timeoutMs === null ? 'its limit' : formatDuration(attempt.job.timeoutMs);
      const message = `the attempt ran longer than ${limit}${more === null ? '' : `; ${more}`}`;
      return {
        ...failed(attempt, ownErrorRecord('TIMEOUT', message, attempt.job.attempt, new Date())),
        outcome: 'TIMED_OUT',
      };
    }
    default:
      return failed(
        attempt,
        ownErrorRecord('ABORTED', `the attempt was aborted: ${kind}`, attempt.job.attempt, new Date()),
      );
  }
}

/** What a handler threw after it was told to stop, when that says more than that it stopped. */
function afterwards(error: unknown): string | null {
  return hasBrand(isAttemptAborted, error) ? null : `then it threw: ${errorText(error, 500)}`;
}

function postponed(attempt: Attempt, error: RetryLater): AttemptEnd {
  try {
    const delayMs = durationMs(error.delay, 'the delay of RetryLater');
    const reason = storableText(String(error.reason ?? error.message), MAX_TEXT.reason);
    return { ...idsOf(attempt), outcome: 'POSTPONED', delayMs, reason };
  } catch (problem) {
    return failed(attempt, {
      ...errorRecord(problem, attempt.job.attempt, new Date()),
      code: 'INVALID_DELAY',
      retryable: false,
    });
  }
}

/** Carries the wait before the next attempt; the store alone decides whether there is one. */
function failed(attempt: Attempt, error: JobErrorData): AttemptEnd {
  const { backoff, failures } = attempt.job;
  const delayMs = retryDelay(backoff, failures + 1, Math.random());
  return { ...idsOf(attempt), outcome: 'FAILED', error, delayMs };
}

function idsOf(attempt: Attempt): { jobId: string; attempt: number } {
  return { jobId: attempt.job.id, attempt: attempt.job.attempt };
}
