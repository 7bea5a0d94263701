/** What a task's handler throws or meets. Recognised by a symbol and not by class, so that two copies of the package agree. */
const BRAND = Symbol.for('waymark.handler-error');

type Brand = 'non-retryable' | 'retry-later' | 'aborted';

function brand(error: Error, kind: Brand): void {
  Object.defineProperty(error, BRAND, { value: kind, enumerable: false });
}

function isBranded(value: unknown, kind: Brand): boolean {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[BRAND] === kind;
}

/** Throw it to fail the job at once, whatever budget is left. `code` becomes `JobError.code`. */
export class NonRetryableError extends Error {
  readonly code: string | undefined;
  readonly details: unknown;

  constructor(message: string, options: { code?: string; details?: unknown; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'NonRetryableError';
    this.code = options.code;
    this.details = options.details;
    brand(this, 'non-retryable');
  }
}

/** Throw it to come back after `delay` (`"30s"`, or milliseconds) without using up budget. */
export class RetryLater extends Error {
  readonly delay: string | number;
  readonly reason: string | undefined;

  constructor(delay: string | number, options: { reason?: string } = {}) {
    super(options.reason ?? `retry later, in ${typeof delay === 'number' ? `${delay}ms` : delay}`);
    this.name = 'RetryLater';
    this.delay = delay;
    this.reason = options.reason;
    brand(this, 'retry-later');
  }
}

/** Why an attempt was told to stop. */
export type AbortKind = 'cancel' | 'timeout' | 'not-advancing' | 'lease-lost' | 'shutdown' | 'suspended';

/** `ctx.signal.reason`. A handler that lets it out of `run` ends as its kind says. */
export class AttemptAborted extends Error {
  readonly kind: AbortKind;

  constructor(kind: AbortKind, message?: string) {
    super(message ?? `the attempt was aborted: ${kind}`);
    this.name = 'AttemptAborted';
    this.kind = kind;
    brand(this, 'aborted');
  }
}

/** A step ran longer than its `timeout`. Retryable. */
export class StepTimeoutError extends Error {
  readonly code = 'STEP_TIMEOUT';

  constructor(key: string, timeout: string) {
    super(`step ${JSON.stringify(key)} ran longer than ${timeout}`);
    this.name = 'StepTimeoutError';
  }
}

/** A checkpoint key was used by two calls of one attempt. Not retryable: the handler is wrong. */
export class DuplicateKeyError extends NonRetryableError {
  constructor(key: string) {
    super(`checkpoint key ${JSON.stringify(key)} was used twice in one attempt; every call needs its own`, {
      code: 'DUPLICATE_KEY',
    });
    this.name = 'DuplicateKeyError';
  }
}

/** Waits of two kinds at once: one state cannot show both. Not retryable: the handler is wrong. */
export class MixedWaitError extends NonRetryableError {
  constructor(first: string, second: string) {
    super(
      `the handler waits for ${first} and ${second} at once; wait for one after the other (an approval has expiresIn)`,
      { code: 'MIXED_WAITS' },
    );
    this.name = 'MixedWaitError';
  }
}

/** A wait inside a step or a batch, which would wait for each other for ever. Not retryable: the handler is wrong. */
export class WaitInsideStepError extends NonRetryableError {
  constructor() {
    super(
      'the handler waits (approval, sleep or children) inside a step, batch or source of data; move the wait out of it',
      {
        code: 'WAIT_INSIDE_STEP',
      },
    );
    this.name = 'WaitInsideStepError';
  }
}

/** People said no. Not retryable, but `retryJob` asks again. With `onReject: "return"` the answer is returned instead. */
export class ApprovalRejectedError extends NonRetryableError {
  readonly key: string;
  readonly by: string;
  readonly comment: string | null;

  constructor(key: string, by: string, comment: string | null) {
    super(`approval ${JSON.stringify(key)} was rejected by ${by}${comment === null ? '' : `: ${comment}`}`, {
      code: 'APPROVAL_REJECTED',
    });
    this.name = 'ApprovalRejectedError';
    this.key = key;
    this.by = by;
    this.comment = comment;
  }
}

/** A child did not complete. Not retryable, but `retryJob` runs the failed children again, and keeps what succeeded. */
export class ChildFailedError extends NonRetryableError {
  /** Public id of the first child that did not complete. */
  readonly jobId: string;

  constructor(jobId: string, message: string) {
    super(message, { code: 'CHILD_FAILED' });
    this.name = 'ChildFailedError';
    this.jobId = jobId;
  }
}

export function isNonRetryable(value: unknown): value is NonRetryableError {
  return isBranded(value, 'non-retryable');
}

export function isRetryLater(value: unknown): value is RetryLater {
  return isBranded(value, 'retry-later');
}

export function isAttemptAborted(value: unknown): value is AttemptAborted {
  return isBranded(value, 'aborted');
}
