import { setMaxListeners } from 'node:events';
import { type AbortKind, AttemptAborted } from '../core/handler-errors.ts';
import { publicId } from '../core/ids.ts';
import type { AnyTask } from '../core/task.ts';
import type { ClaimedJob, SuspendWait } from '../engine/types.ts';
import { monotonicMs } from './timing.ts';

/** Kinds of abort after which the job belongs to somebody else: nothing may be written about it. */
const LOST: readonly AbortKind[] = ['lease-lost', 'not-advancing'];

/** Names an attempt among all attempts of all jobs. */
export function attemptKey(job: { jobId: string; attempt: number }): string {
  return `${job.jobId}#${job.attempt}`;
}

/** Why an attempt is told to stop. */
export interface AbortMessage {
  kind: AbortKind;
  message: string | undefined;
}

/** What an attempt must know of the lease that covers it. */
export interface Cover {
  /** By the worker's own clock. */
  readonly alive: boolean;
  /** Resolves when it is known again whether the lease lasts; at once while it does. */
  sure(): Promise<void>;
}

const ALWAYS: Cover = { alive: true, sure: async () => {} };

/** One attempt while this worker holds a slot for it: what it was told, and whether it may still write. */
export class Attempt {
  readonly job: ClaimedJob;
  readonly task: AnyTask;
  /** The boot under which it was claimed. */
  readonly workerId: string;
  /** By `monotonicMs`. */
  readonly startedAt = monotonicMs();
  readonly #cover: Cover;
  /** Made when somebody asks for the signal: most handlers never do, and it costs more than all the rest. */
  #controller: AbortController | null = null;
  #reason: AttemptAborted | null = null;
  readonly #listeners: ((kind: AbortKind) => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  #abortKind: AbortKind | null = null;
  #abortMessage: string | undefined;
  #lost = false;
  #over = false;
  #advancedAt = this.startedAt;
  #givenUp = false;
  readonly #whenGivenUp: (() => void)[] = [];
  #suspended = false;
  #whenSuspended: ((wait: SuspendWait) => void) | null = null;
  /** Resolves when `cancelDelivered` was told to the store, or could not be. */
  cancelDelivery: Promise<void> | null = null;

  constructor(job: ClaimedJob, task: AnyTask, workerId: string, cover: Cover = ALWAYS) {
    this.#cover = cover;
    this.job = job;
    this.task = task;
    this.workerId = workerId;
  }

  /** See `attemptKey`. */
  get key(): string {
    return attemptKey({ jobId: this.job.id, attempt: this.job.attempt });
  }

  /** As it is called in log lines. */
  get names(): { jobId: string; attempt: number; task: string } {
    return { jobId: publicId('Job', this.job.id), attempt: this.job.attempt, task: this.job.task };
  }

  /** The handler's signal. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      // Every fetch of a handler may listen; that is no leak.
      setMaxListeners(0, this.#controller.signal);
      if (this.#reason !== null) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Whether the signal has fired. */
  get aborted(): boolean {
    return this.#reason !== null;
  }

  /** @throws AttemptAborted when the signal has fired */
  assertNotAborted(): void {
    if (this.#reason !== null) throw this.#reason;
  }

  /** The kind of the first abort; a later one does not change what the handler was told. */
  get abortKind(): AbortKind | null {
    return this.#abortKind;
  }

  /** What the newest abort said. */
  get abortMessage(): string | undefined {
    return this.#abortMessage;
  }

  /** The job is no longer this attempt's, whatever the handler was told first. */
  get lost(): boolean {
    return this.#lost;
  }

  /** The handler returned or was given up: what it still calls is refused. */
  get over(): boolean {
    return this.#over;
  }

  /** Whether anything may be written about the job in this attempt's name. */
  get writable(): boolean {
    return !this.#over && !this.#lost;
  }

  /** Nobody waits for the handler any longer. A second call does nothing. */
  giveUp(): void {
    this.#givenUp = true;
    for (const listener of this.#whenGivenUp.splice(0)) listener();
  }

  /** Calls `listener` when the handler was told to stop and its time for that is over; at once when it is. */
  onGivenUp(listener: () => void): void {
    if (this.#givenUp) listener();
    else this.#whenGivenUp.push(listener);
  }

  /** Nothing that the handler calls from now on settles. */
  get suspended(): boolean {
    return this.#suspended;
  }

  /** The handler waits, and nothing else of it is under way. Does nothing once the attempt is over. */
  suspend(wait: SuspendWait): void {
    if (this.#over) return;
    this.#suspended = true;
    this.#whenSuspended?.(wait);
  }

  /** Calls `listener` when the handler waits for people, time or children. One listener. */
  onSuspended(listener: (wait: SuspendWait) => void): void {
    this.#whenSuspended = listener;
  }

  /** Fires the handler's signal; a second call only adds that the job is lost, if `kind` says so. */
  abort(kind: AbortKind, message?: string): void {
    if (LOST.includes(kind)) this.#lost = true;
    const first = this.#abortKind === null;
    if (first) this.#abortKind = kind;
    this.#abortMessage = message;
    for (const listener of this.#listeners) listener(kind);
    if (this.#lost) this.#refuseWaiting();
    if (!first) return;
    this.#reason = new AttemptAborted(kind, message);
    this.#controller?.abort(this.#reason);
  }

  /** Told of each abort, before the handler's signal fires. */
  onAbort(listener: (kind: AbortKind) => void): void {
    this.#listeners.push(listener);
  }

  /** From now on every call of the context is refused. A second call does nothing. */
  close(): void {
    this.#over = true;
    this.#refuseWaiting();
  }

  #refuseWaiting(): void {
    for (const refuse of this.#waiting.splice(0)) refuse();
  }

  /**
   * `work`, but rejected when the attempt is over or lost meanwhile: a store that does not answer must not keep a handler
   * that has to stop, nor the slot of one that has ended. @throws AttemptAborted
   */
  unlessOver<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const refuse = (): void => reject(this.#refusal());
      this.#waiting.push(refuse);
      work.then(
        (value) => {
          this.#forget(refuse);
          resolve(value);
        },
        (error) => {
          this.#forget(refuse);
          reject(error);
        },
      );
    });
  }

  #forget(refuse: () => void): void {
    const at = this.#waiting.indexOf(refuse);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  /** @throws AttemptAborted when nothing may be written any more */
  assertWritable(): void {
    if (!this.writable) throw this.#refusal();
  }

  /**
   * For what comes before work that cannot be taken back: a handler that has just blocked the loop for a whole lease may
   * not know yet that its job is another's. A promise only when that has to be asked.
   * @throws AttemptAborted when it is, at once or by the promise
   */
  assertOwned(): Promise<void> | undefined {
    if (!this.#cover.alive) return this.unlessOver(this.#cover.sure()).then(() => this.assertWritable());
    this.assertWritable();
    return undefined;
  }

  #refusal(): AttemptAborted {
    if (this.#lost)
      return new AttemptAborted('lease-lost', 'the attempt no longer owns its job; nothing more is written');
    return new AttemptAborted(this.#abortKind ?? 'lease-lost', 'the attempt is over; nothing more is written');
  }

  /** The handler reported progress or saved a checkpoint. */
  advanced(): void {
    this.#advancedAt = monotonicMs();
  }

  /** Why the store ended this attempt, as far as can be told from here. */
  lossKind(): 'lease-lost' | 'not-advancing' {
    const limit = this.job.stallTimeoutMs;
    return limit !== null && monotonicMs() - this.#advancedAt >= limit ? 'not-advancing' : 'lease-lost';
  }
}
