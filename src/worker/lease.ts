import { publicId } from '../core/ids.ts';
import type { Logger } from '../core/log.ts';
import type { BeatAnswer, ExecutionEngine } from '../engine/types.ts';
import { type Attempt, attemptKey, type Cover } from './attempt.ts';
import type { Beater, BeaterParts } from './beater.ts';
import type { Roster } from './roster.ts';
import { after, monotonicMs } from './timing.ts';
import { Trouble } from './trouble.ts';

/** How many claims have been sent, and how many of them have been answered or have failed. One is under way at a time. */
export interface ClaimCount {
  started: number;
  finished: number;
}

/** A job that the store says is ours, and that we do not know. */
interface Stranger {
  /** The claims that had been sent when it was first seen. */
  readonly claims: number;
  /** When it was unknown though those were answered; by `monotonicMs`. */
  since: number;
}

/** A timer later than this was kept waiting by a blocked loop. */
const LATE_MS = 50;

export interface LeaseParts {
  workerId: string;
  execution: Pick<ExecutionEngine, 'beat' | 'cancelDelivered' | 'settle'>;
  /** Who sends the beats. */
  newBeater: (parts: BeaterParts) => Beater;
  roster: Roster;
  claims: Readonly<ClaimCount>;
  heartbeatMs: number;
  leaseMs: number;
  /** What the beats report. */
  status: () => { busy: number; draining: boolean; blocked: boolean };
  /** The store knows this worker as LOST: it must go on under a new id. Called once. */
  onLost: () => void;
  /** By our clock the lease was over, or near enough to its end that nothing was claimed, and is not: claim again. */
  onRenewed: () => void;
  onError: (error: unknown) => void;
  log: Logger;
}

/**
 * The lease of one boot: beats, and what their answers mean for the handlers. By the worker's own clock it lasts
 * `leaseMs` from the sending of the last beat that was answered, which is never longer than the store thinks.
 */
export class Lease implements Cover {
  readonly #parts: LeaseParts;
  readonly #beater: Beater;
  readonly #trouble: Trouble;
  #strangers = new Map<string, Stranger>();
  #ackedAt: number;
  #cutOff = false;
  #asked = false;
  /** Those who wait to know whether the lease lasts. */
  #unsure: (() => void)[] = [];
  #over = false;
  #prevent: () => void = () => {};

  /** @param openedAt when the worker's registration was sent */
  constructor(parts: LeaseParts, openedAt: number) {
    this.#parts = parts;
    this.#ackedAt = openedAt;
    this.#trouble = new Trouble({ log: parts.log, doing: 'renew the lease', onError: parts.onError });
    this.#beater = parts.newBeater({
      heartbeatMs: parts.heartbeatMs,
      beat: () => parts.execution.beat(parts.workerId, { ...parts.status(), leaseMs: parts.leaseMs }),
      answered: (answer, sentAt) => this.#answered(answer, sentAt),
      failed: (error) => void this.#trouble.failed(error),
    });
  }

  get workerId(): string {
    return this.#parts.workerId;
  }

  /** Whether jobs may be started in its name. */
  get alive(): boolean {
    return !this.#over && monotonicMs() < this.#ackedAt + this.#parts.leaseMs;
  }

  sure(): Promise<void> {
    if (this.alive || this.#over || this.#cutOff) return Promise.resolve();
    return new Promise((resolve) => this.#unsure.push(resolve));
  }

  #known(): void {
    for (const resolve of this.#unsure.splice(0)) resolve();
  }

  /** Whether to claim in its name: what would be claimed shortly before a lease runs out is soon taken away again. */
  get fresh(): boolean {
    return this.alive && monotonicMs() < this.#ackedAt + this.#parts.leaseMs / 2;
  }

  /** A second call does nothing. */
  start(): void {
    this.#arm();
    this.#beater.start();
  }

  /** There is news to read: a cancel, or a write that was refused. */
  nudge(): void {
    this.#beater.nudge();
  }

  /** No more beats; the lease runs out by itself. A second call does nothing. */
  stop(): void {
    this.#over = true;
    this.#known();
    this.#prevent();
    this.#beater.stop();
  }

  #arm(): void {
    this.#prevent();
    const endsAt = this.#ackedAt + this.#parts.leaseMs;
    this.#prevent = after(endsAt - monotonicMs(), () => this.#ranOut(endsAt));
  }

  /** Cut off for a whole lease: others may have our jobs by now. Beats go on, in case nobody has. */
  #ranOut(endsAt: number): void {
    if (this.#over) return;
    // A timer may come a moment early.
    if (this.alive) {
      this.#arm();
      return;
    }
    // One that comes late was held up by a handler, and so were the answers: they are read before anything is given up.
    if (!this.#asked && monotonicMs() - endsAt > LATE_MS) {
      this.#asked = true;
      this.#beater.nudge();
      this.#prevent = after(this.#parts.heartbeatMs, () => this.#ranOut(endsAt));
      return;
    }
    this.#cutOff = true;
    this.#parts.log.warn(
      { workerId: publicId('Worker', this.workerId) },
      'the lease ran out without an answer of the store; handlers are stopped',
    );
    this.#abandonAll();
    this.#known();
  }

  #answered(answer: BeatAnswer, sentAt: number): void {
    this.#trouble.ok();
    if (this.#over || sentAt < this.#ackedAt) return;
    if (!answer.alive) {
      this.#lost();
      return;
    }
    const claimed = this.fresh;
    this.#ackedAt = sentAt;
    this.#asked = false;
    this.#arm();
    const known = this.#parts.roster.byKey();
    this.#deliverCancels(answer, known);
    this.#stopMissing(answer, sentAt);
    this.#handBackStrangers(answer, sentAt, known);
    if (this.alive) this.#known();
    if (this.alive) this.#cutOff = false;
    // Looks that were due meanwhile were not planned again.
    if (this.fresh && !claimed) this.#parts.onRenewed();
  }

  #lost(): void {
    this.stop();
    this.#parts.log.warn(
      { workerId: publicId('Worker', this.workerId) },
      'this worker was given up as lost; it goes on under a new id',
    );
    this.#abandonAll();
    this.#parts.onLost();
  }

  #abandonAll(): void {
    for (const attempt of [...this.#parts.roster.spokenFor()]) {
      if (attempt.workerId === this.workerId && !attempt.lost) attempt.abort('lease-lost');
    }
  }

  #deliverCancels(answer: BeatAnswer, known: ReadonlyMap<string, Attempt>): void {
    for (const { jobId, attempt: number, cancel } of answer.jobs) {
      const attempt = cancel ? known.get(attemptKey({ jobId, attempt: number })) : undefined;
      if (!cancel || !attempt?.writable) continue;
      const why = cancel.reason === null ? '' : `: ${cancel.reason}`;
      attempt.abort('cancel', `the job was canceled${cancel.by === null ? '' : ` by ${cancel.by}`}${why}`);
      // A handler that was told to stop for another reason has not been told of this one.
      if (attempt.abortKind === 'cancel') attempt.cancelDelivery ??= this.#deliver(attempt);
    }
  }

  async #deliver(attempt: Attempt): Promise<void> {
    try {
      await this.#parts.execution.cancelDelivered(attempt.job.id, attempt.job.attempt);
    } catch (error) {
      // The next beat names the cancel again.
      attempt.cancelDelivery = null;
      this.#parts.onError(error);
    }
  }

  /** Attempts that run here and are no longer ours. One that was claimed after the beat was sent is not meant. */
  #stopMissing(answer: BeatAnswer, sentAt: number): void {
    const ours = new Set(answer.jobs.map(attemptKey));
    for (const attempt of [...this.#parts.roster.spokenFor()]) {
      if (attempt.workerId !== this.workerId || !attempt.writable) continue;
      if (attempt.startedAt < sentAt && !ours.has(attempt.key)) attempt.abort(attempt.lossKind());
    }
  }

  /**
   * Jobs of a claim whose answer was lost. One that is only being claimed or settled looks the same for a moment: it
   * must be unknown when every claim that it can be from has been answered, and still in the answer to a beat that was
   * sent later.
   */
  #handBackStrangers(answer: BeatAnswer, sentAt: number, known: ReadonlyMap<string, Attempt>): void {
    const { claims, log } = this.#parts;
    const seen = new Map<string, Stranger>();
    for (const job of answer.jobs) {
      const key = attemptKey(job);
      if (known.has(key)) continue;
      const stranger = this.#strangers.get(key) ?? { claims: claims.started, since: Number.POSITIVE_INFINITY };
      seen.set(key, stranger);
      const isSure = sentAt > stranger.since;
      if (claims.finished >= stranger.claims) stranger.since = Math.min(stranger.since, monotonicMs());
      if (!isSure) continue;
      log.warn(
        { jobId: publicId('Job', job.jobId), attempt: job.attempt },
        'a job that this worker owns but does not run is handed back',
      );
      this.#handBack(job);
    }
    this.#strangers = seen;
  }

  #handBack({ jobId, attempt }: { jobId: string; attempt: number }): void {
    // If this fails, the next answer names it again.
    this.#parts.execution.settle({ jobId, attempt, outcome: 'RELEASED' }).catch((error) => this.#parts.onError(error));
  }
}
