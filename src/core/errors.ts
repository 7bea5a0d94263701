/**
 * Every failure that a caller can expect, as a class with a stable `code` and typed data. The schema turns them into
 * results or GraphQL errors in one place; whatever is not a WaymarkError is a defect and is masked at the edge.
 */
export abstract class WaymarkError extends Error {
  abstract readonly code: string;
  /** Where in a bulk call it happened (`inputs[17]`), else undefined. */
  path?: string;

  constructor(message: string, options?: ErrorOptions & { path?: string }) {
    super(message, options);
    this.name = new.target.name;
    if (options?.path !== undefined) this.path = options.path;
  }
}

/** One thing that is wrong with an input. `path` is absolute: `input.rows[3].email`. */
export interface InputIssue {
  path: string;
  message: string;
}

/** The caller's input breaks a rule; nothing was changed. `issues` names each field and its rule. */
export class InvalidInput extends WaymarkError {
  readonly code = 'INVALID_INPUT';
  readonly issues: readonly InputIssue[];

  constructor(issues: readonly InputIssue[], options?: { path?: string; cause?: unknown }) {
    super(issues.map((i) => `${i.path}: ${i.message}`).join('; ') || 'invalid input', options);
    this.issues = issues;
  }
}

/** A string that should be an id is none, or is the id of something else. */
export class InvalidId extends WaymarkError {
  readonly code = 'BAD_USER_INPUT';
  readonly id: string;

  constructor(id: string, rule: string, path?: string) {
    super(`id ${JSON.stringify(id.slice(0, 80))} ${rule}`, path === undefined ? undefined : { path });
    this.id = id;
  }
}

/** No worker or back end has registered a task of this name. */
export class UnknownTask extends WaymarkError {
  readonly code = 'UNKNOWN_TASK';
  readonly task: string;
  readonly known: readonly string[];

  constructor(task: string, known: readonly string[], path?: string) {
    super(`unknown task ${JSON.stringify(task)}`, path === undefined ? undefined : { path });
    this.task = task;
    this.known = known;
  }
}

/** The key belongs to a job with another input. `jobId` is that job (stored form). */
export class IdempotencyConflict extends WaymarkError {
  readonly code = 'IDEMPOTENCY_CONFLICT';
  readonly jobId: string;
  readonly givenDigest: string;
  readonly storedDigest: string;

  constructor(key: string, jobId: string, givenDigest: string, storedDigest: string, path?: string) {
    super(
      `idempotency key ${JSON.stringify(key)} was used with another input`,
      path === undefined ? undefined : { path },
    );
    this.jobId = jobId;
    this.givenDigest = givenDigest;
    this.storedDigest = storedDigest;
  }
}

/** The key belongs to a graph of other nodes. `graphId` is that graph (stored form). */
export class GraphIdempotencyConflict extends WaymarkError {
  readonly code = 'GRAPH_IDEMPOTENCY_CONFLICT';
  readonly graphId: string;
  readonly givenDigest: string;
  readonly storedDigest: string;

  constructor(key: string, graphId: string, givenDigest: string, storedDigest: string) {
    super(`idempotency key ${JSON.stringify(key)} was used for another graph`);
    this.graphId = graphId;
    this.givenDigest = givenDigest;
    this.storedDigest = storedDigest;
  }
}

/** A JSON value is larger than the setting allows. */
export class PayloadTooLarge extends WaymarkError {
  readonly code = 'PAYLOAD_TOO_LARGE';
  readonly limitBytes: number;
  readonly actualBytes: number;

  constructor(what: string, limitBytes: number, actualBytes: number, path?: string) {
    super(
      `${what} has ${actualBytes} bytes as JSON; the limit is ${limitBytes}`,
      path === undefined ? undefined : { path },
    );
    this.limitBytes = limitBytes;
    this.actualBytes = actualBytes;
  }
}

/** Nothing of this id exists for this caller: unknown, removed, or another tenant's. */
export class NotFound extends WaymarkError {
  readonly code = 'NOT_FOUND';
  /** As the caller gave it. */
  readonly id: string;

  constructor(what: string, id: string, path?: string) {
    super(`${what} ${id} was not found`, path === undefined ? undefined : { path });
    this.id = id;
  }
}

/** The job is not in a state in which this is possible; nothing was changed. `jobId` is the stored form. */
export class InvalidTransition extends WaymarkError {
  readonly code = 'INVALID_TRANSITION';
  readonly jobId: string;

  constructor(jobId: string, message: string) {
    super(message);
    this.jobId = jobId;
  }
}

/** The job waits for no answer of people; nothing was changed. `jobId` is the stored form. */
export class NotWaiting extends WaymarkError {
  readonly code = 'NOT_WAITING';
  readonly jobId: string;

  constructor(jobId: string, message: string) {
    super(message);
    this.jobId = jobId;
  }
}

/** It is decided, or this person has decided otherwise before; nothing was changed. `approvalId` is the stored form. */
export class AlreadyDecided extends WaymarkError {
  readonly code = 'ALREADY_DECIDED';
  readonly approvalId: string;

  constructor(approvalId: string, message: string) {
    super(message);
    this.approvalId = approvalId;
  }
}

/** What the person was shown is not what is asked now: look again. `approvalId` is the stored form. */
export class StaleApproval extends WaymarkError {
  readonly code = 'STALE_APPROVAL';
  readonly approvalId: string;

  constructor(approvalId: string) {
    super('the digest is not that of the approval as it is; look at it again');
    this.approvalId = approvalId;
  }
}

/** This person may not do that; nothing was changed. */
export class NotAllowed extends WaymarkError {
  readonly code = 'NOT_ALLOWED';
}

/** Not as many jobs match as the caller had seen; nothing was changed. */
export class CountChanged extends WaymarkError {
  readonly code = 'COUNT_CHANGED';
  readonly expected: number;
  readonly actual: number;

  constructor(expected: number, actual: number) {
    super(`${actual} jobs match now, and not ${expected}; look again`);
    this.expected = expected;
    this.actual = actual;
  }
}

/** What a worker said about an attempt that is no longer its own. Nothing was written. */
export class LeaseLost extends WaymarkError {
  readonly code = 'LEASE_LOST';
  readonly jobId: string;
  readonly attempt: number;

  constructor(jobId: string, attempt: number) {
    super(`attempt ${attempt} of job ${jobId} no longer owns the job`);
    this.jobId = jobId;
    this.attempt = attempt;
  }
}

/** A Waymark call that does not use the open transaction was made inside it; on one connection it could never return. */
export class InsideTransaction extends WaymarkError {
  readonly code = 'INSIDE_TRANSACTION';

  constructor() {
    super('this call was made inside an open transaction but does not use it; move it out, or use the given tx');
  }
}

/** Postgres (or the process that holds it) cannot be reached now. Safe to repeat with an idempotency key. */
export class Unavailable extends WaymarkError {
  readonly code = 'UNAVAILABLE';

  constructor(message = 'the store cannot be reached now; try again', options?: ErrorOptions) {
    super(message, options);
  }
}

/** A documented limit was reached. */
export class LimitExceeded extends WaymarkError {
  readonly code = 'LIMIT_EXCEEDED';
  readonly limit: number;
  readonly retryAfterMs: number | null;

  constructor(message: string, limit: number, retryAfterMs: number | null = null) {
    super(message);
    this.limit = limit;
    this.retryAfterMs = retryAfterMs;
  }
}

/** `after` is beyond the newest event: the store was restored from an older copy. Read again from 0. */
export class CursorInvalid extends WaymarkError {
  readonly code = 'CURSOR_INVALID';

  constructor(message: string) {
    super(message);
  }
}

/** Another process owns the embedded database's directory. */
export class DataDirInUse extends WaymarkError {
  readonly code = 'DATA_DIR_IN_USE';

  constructor(dir: string, owner: { pid: number | null; address: string | null }) {
    super(
      `${dir} is in use by process ${owner.pid ?? '(unknown)'}${owner.address ? ` at ${owner.address}` : ''}; ` +
        'one process owns an embedded database. Stop it, choose another WAYMARK_DATA_DIR, or use Postgres (DATABASE_URL)',
    );
  }
}

/** The database was written by a version that this one must not touch, or was never migrated. */
export class IncompatibleDatabase extends WaymarkError {
  readonly code = 'INCOMPATIBLE_DATABASE';
}

/** Settings that cannot be used; the message lists every one. */
export class InvalidSettings extends WaymarkError {
  readonly code = 'INVALID_SETTINGS';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`wrong settings:\n${problems.map((p) => `  - ${p}`).join('\n')}`);
    this.problems = problems;
  }
}
