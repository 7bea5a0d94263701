import type { GatherOptions } from '../artifacts/gather.ts';
import { publicId } from '../core/ids.ts';
import { toIso } from '../core/job.ts';
import type { Jsonify, JsonValue } from '../core/json.ts';
import type { Logger } from '../core/log.ts';
import type { AnyTask } from '../core/task.ts';
import type { UserDb, UserTx } from '../db/types.ts';
import type { SubmitJobOptions } from '../engine/submit-options.ts';
import type { ClaimedJob, LogWrite } from '../engine/types.ts';
import { askForApproval } from './approval.ts';
import { createArtifactCalls } from './artifacts.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptWrites } from './attempt-writes.ts';
import { type BatchesCall, runBatches } from './batches.ts';
import { stableKey, UsedKeys } from './checkpoint-key.ts';
import { type JobSpec, outcomeOf, runChildren, submitOnce, submitWithin } from './children.ts';
import type { HandlerContext, HandlerLog } from './context.ts';
import { assertOutsideStep } from './inside-step.ts';
import { assertOutsideTransaction } from './inside-transaction.ts';
import type { LogBuffer } from './log-buffer.ts';
import type { ProgressTrack } from './progress-flusher.ts';
import { sleepDurably } from './sleep.ts';
import { runStep } from './steps.ts';
import { createValueCheckpoints } from './value-checkpoints.ts';
import type { AnyApprovalOptions, ChildrenOptions } from './wait-types.ts';
import { Waits } from './waits.ts';

/** What a context is made of. */
export interface ContextParts {
  attempt: Attempt;
  writes: AttemptWrites;
  track: ProgressTrack;
  logs: LogBuffer;
  log: Logger;
  db: UserDb;
  /** How the contents of artifacts are gathered. */
  gathering: GatherOptions;
  /** Where people find this Waymark. */
  publicUrl: string;
}

/**
 * The context of one attempt. Its functions need no `this`; after the attempt ended they are refused. What a handler may
 * never ask for is made when it is asked for.
 */
export function createHandlerContext(parts: ContextParts): {
  ctx: HandlerContext;
  /** To be awaited before the handler runs; null where there is nothing to be read. */
  load: (() => Promise<void>) | null;
} {
  const ctx = new Context(parts);
  return { ctx, load: parts.attempt.job.depends ? () => ctx.load() : null };
}

class Context implements HandlerContext {
  readonly #parts: ContextParts;
  #described: HandlerContext['job'] | undefined;
  #used: UsedKeys | undefined;
  #values: ReturnType<typeof createValueCheckpoints> | undefined;
  #log: HandlerLog | undefined;
  #artifacts: HandlerContext['artifact'] | undefined;
  #outcomes: HandlerContext['dependencies'] = [];
  #suspension: Waits | undefined;

  constructor(parts: ContextParts) {
    this.#parts = parts;
  }

  get job(): HandlerContext['job'] {
    this.#described ??= describe(this.#parts.attempt.job);
    return this.#described;
  }

  get signal(): AbortSignal {
    return this.#parts.attempt.signal;
  }

  get db(): UserDb {
    return this.#parts.db;
  }

  get log(): HandlerLog {
    this.#log ??= createHandlerLog(this.#parts);
    return this.#log;
  }

  readonly progress: HandlerContext['progress'] = (report) => {
    const { attempt, track } = this.#parts;
    if (attempt.writable && track.report(report)) attempt.advanced();
  };

  readonly step: HandlerContext['step'] = <T>(...[key, fn, options]: Parameters<HandlerContext['step']>) =>
    this.#call(() => {
      this.#keys.use(key, 'STEP');
      const { attempt, writes } = this.#parts;
      const step = { key, idempotencyKey: () => this.idempotencyKey(key), options };
      return runStep(step, fn, attempt, writes) as Promise<Jsonify<T>>;
    });

  readonly transaction: HandlerContext['transaction'] = <T>(key: string, fn: (tx: UserTx) => Promise<T> | T) =>
    this.#call(async () => {
      this.#keys.use(key, 'STEP');
      return (await runTransaction(key, fn, this.#parts.writes)) as Jsonify<T>;
    });

  readonly batches: HandlerContext['batches'] = <V, C>(
    key: string,
    options: BatchesCall<V, C>['options'],
    fn: unknown,
  ) =>
    this.#call(() => {
      this.#keys.use(key, 'CURSOR');
      const { attempt, writes } = this.#parts;
      const call = { key, options, fn: fn as BatchesCall<V, C>['fn'], idempotencyKey: this.idempotencyKey };
      return runBatches(call, attempt, writes);
    });

  readonly checkpoint: HandlerContext['checkpoint'] = (key, data) =>
    this.#call(() => this.#checkpoints.save(key, data));

  readonly restore: HandlerContext['restore'] = <T>(key: string) =>
    this.#call(() => this.#checkpoints.restore(key) as Promise<T | undefined>);

  readonly artifact: HandlerContext['artifact'] = (name, data, options) =>
    this.#call(() => {
      this.#artifacts ??= createArtifactCalls(this.#parts);
      return this.#artifacts(name, data, options);
    });

  readonly approval: HandlerContext['approval'] = (key: string, options: object) =>
    this.#wait(() => {
      this.#keys.use(key, 'APPROVAL');
      const { attempt, writes, publicUrl } = this.#parts;
      const call = { key, options: options as AnyApprovalOptions, publicUrl };
      return askForApproval(call, attempt, writes, this.#waits) as Promise<never>;
    });

  readonly sleep: HandlerContext['sleep'] = (key, delay) =>
    this.#wait(() => {
      this.#keys.use(key, 'SLEEP');
      const { attempt, writes } = this.#parts;
      return sleepDurably(key, delay, attempt.job, writes, this.#waits);
    });

  readonly children: HandlerContext['children'] = (key: string, specs: object, options: ChildrenOptions = {}) =>
    this.#wait(() => {
      this.#keys.use(key, 'CHILDREN');
      return runChildren(key, specs as JobSpec[], options, this.#parts.writes, this.#waits) as Promise<never>;
    });

  readonly submit: HandlerContext['submit'] = (
    key: string,
    task: AnyTask | string,
    input?: unknown,
    { tx, ...options }: SubmitJobOptions = {},
  ) => {
    const { attempt, writes } = this.#parts;
    if (tx !== undefined) return submitWithin(tx, { task, input, ...options }, attempt, writes);
    return this.#call(() => {
      this.#keys.use(key, 'STEP');
      return submitOnce(key, { task, input, ...options }, writes);
    });
  };

  get dependencies(): HandlerContext['dependencies'] {
    return this.#outcomes;
  }

  async load(): Promise<void> {
    const rows = await this.#parts.writes.dependencies();
    this.#outcomes = rows.map((row) => ({ ...outcomeOf(row), name: row.name }));
  }

  readonly dependency: HandlerContext['dependency'] = (name: string) => {
    const found = this.dependencies.find((outcome) => outcome.name === name);
    if (!found) throw new Error(`the job depends on no node ${JSON.stringify(name)}`);
    return found as never;
  };

  readonly idempotencyKey: HandlerContext['idempotencyKey'] = (name) => {
    const { job } = this.#parts.attempt;
    return stableKey(job.id, job.epoch, String(name));
  };

  get #keys(): UsedKeys {
    this.#used ??= new UsedKeys();
    return this.#used;
  }

  get #waits(): Waits {
    const { attempt, log } = this.#parts;
    this.#suspension ??= new Waits(
      (wait) => attempt.suspend(wait),
      (message) => log.warn(attempt.names, message),
    );
    return this.#suspension;
  }

  get #checkpoints() {
    this.#values ??= createValueCheckpoints(this.#parts.writes, this.#keys);
    return this.#values;
  }

  /** Refuses what cannot be done now before anything is done; a promise nobody waits for must not end the process. */
  #call<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#checkedCall(work);
    result.catch(() => {});
    return result;
  }

  /** A call that may suspend the attempt. */
  #wait<T>(work: () => Promise<T>): Promise<T> {
    return this.#call(() => {
      assertOutsideStep(this.#parts.attempt);
      return work();
    });
  }

  // Not an async function, and few of those below it: a step's promises are most of what its worker has to clear away.
  #checkedCall<T>(work: () => Promise<T>): Promise<T> {
    const { attempt } = this.#parts;
    try {
      assertOutsideTransaction();
      // A refusal would run the handler's catch and finally.
      if (!attempt.suspended) attempt.assertWritable();
    } catch (error) {
      return Promise.reject(error);
    }
    return this.#waits.run(() => {
      const asked = attempt.assertOwned();
      return asked === undefined ? work() : asked.then(work);
    });
  }
}

function describe(job: ClaimedJob): HandlerContext['job'] {
  return {
    id: publicId('Job', job.id),
    task: job.task,
    run: job.run,
    attempt: job.attempt,
    maxAttempts: job.maxAttempts,
    tenant: job.tenant,
    tags: job.tags,
    submittedBy: job.submittedBy,
    createdAt: new Date(toIso(job.createdAt)),
  };
}

async function runTransaction<T>(
  key: string,
  fn: (tx: UserTx) => Promise<T> | T,
  writes: AttemptWrites,
): Promise<unknown> {
  const earlier = await writes.earlierOf(key, 'STEP');
  if (earlier) return earlier.data;
  const isDone = (): boolean => true;
  const saved = await writes.transaction(key, isDone, async (tx) => {
    const data = writes.jsonText(await fn(tx), `transaction ${JSON.stringify(key)}`);
    return { key, kind: 'STEP', data };
  });
  return saved.data;
}

/** To the worker's own log, and stored with the job as long as the attempt lasts. */
function createHandlerLog({ attempt, logs, log }: ContextParts): HandlerLog {
  const { jobId, attempt: number } = attempt.names;
  const ids = { jobId, attempt: number };
  const write = (level: LogWrite['level'], message: string, data?: JsonValue): void => {
    try {
      if (attempt.writable) logs.add(attempt.job, level, message, data);
      log[level](data === undefined ? ids : { ...ids, data }, message);
    } catch {
      // A line that cannot be written must not fail the job.
    }
  };
  return {
    debug: (message, data) => write('debug', message, data),
    info: (message, data) => write('info', message, data),
    warn: (message, data) => write('warn', message, data),
    error: (message, data) => write('error', message, data),
  };
}
