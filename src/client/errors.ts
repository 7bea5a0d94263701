import type { InputIssue } from '../core/errors.ts';
import type { Job, JobError, WaitingOn } from './types.ts';

/** Codes that the client itself gives; all others come from the service. */
export type ClientCode =
  /** No answer: nobody listens there, or the connection broke. Safe to repeat. */
  | 'UNREACHABLE'
  /** Something answered that is not the service. */
  | 'BAD_RESPONSE'
  /** The service closed the live connection for good. */
  | 'CONNECTION_CLOSED'
  /** `transport: 'ws'` was asked for, this runtime has no WebSocket and none was given. */
  | 'NO_WEBSOCKET'
  /** The client was closed. */
  | 'CLIENT_CLOSED';

/**
 * The service refused a request, or could not be asked. `code` is stable: a `UserError`'s (`INVALID_INPUT`,
 * `UNKNOWN_TASK`, `NOT_FOUND`, …), a GraphQL error's (`UNAVAILABLE`, `LIMIT_EXCEEDED`, …) or a ClientCode.
 */
export class RequestError extends Error {
  readonly code: string;
  /** What is wrong with the input, field by field; empty for other codes. */
  readonly issues: readonly InputIssue[];
  /** All that the service said, such as `known` of UNKNOWN_TASK or `retryAfterMs` of LIMIT_EXCEEDED. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, options: { details?: Record<string, unknown>; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'RequestError';
    this.code = code;
    this.details = options.details ?? {};
    this.issues = (this.details.issues as InputIssue[] | undefined) ?? [];
  }

  /** Nothing is known to have happened: try again (with the same idempotency key). */
  get isUnavailable(): boolean {
    return this.code === 'UNREACHABLE' || this.code === 'UNAVAILABLE';
  }
}

/** The job FAILED. `error` is the last attempt's. */
export class JobFailedError extends Error {
  readonly job: Job;
  readonly error: JobError | null;
  readonly code: string;

  constructor(job: Job) {
    super(`job ${job.id} failed${job.error ? `: ${job.error.message}` : ''}`);
    this.name = 'JobFailedError';
    this.job = job;
    this.error = job.error;
    this.code = job.error?.code ?? 'FAILED';
  }
}

/** The job was CANCELED. */
export class JobCanceledError extends Error {
  readonly job: Job;
  readonly reason: string | null;

  constructor(job: Job) {
    const reason = job.cancellation?.reason ?? null;
    super(`job ${job.id} was canceled${reason ? `: ${reason}` : ''}`);
    this.name = 'JobCanceledError';
    this.job = job;
    this.reason = reason;
  }
}

/** The job did not end within the time given to wait. It goes on. */
export class WaitTimeoutError extends Error {
  /** As last known; null when the service never answered. */
  readonly state: Job['state'] | null;
  readonly waitingOn: WaitingOn | null;

  constructor(id: string, timeout: string, job: Job | null) {
    const state = job?.state ?? null;
    super(
      `job ${id} did not end within ${timeout}${state ? `; it is ${state}` : ''}${job?.waitingOn ? `: ${job.waitingOn.detail}` : ''}`,
    );
    this.name = 'WaitTimeoutError';
    this.state = state;
    this.waitingOn = job?.waitingOn ?? null;
  }
}
