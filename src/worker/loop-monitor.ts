import type { Logger } from '../core/log.ts';
import { detached, monotonicMs } from './timing.ts';

const LOG_EVERY_MS = 10_000;

/**
 * Watches for a blocked event loop: a handler that computes without a pause keeps timers, beats and its neighbours
 * waiting. Seen by a timer that comes late, so a block is known here when it is over; the thread of the beats, which
 * gets a sign with each tick, knows sooner.
 */
export class LoopMonitor {
  readonly #everyMs: number;
  readonly #blockedMs: number;
  readonly #log: Logger;
  readonly #onTick: () => void;
  #timer: NodeJS.Timeout | null = null;
  #dueAt = 0;
  #worst = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;

  /** @param blockedMs a delay from which on the loop counts as blocked */
  constructor(blockedMs: number, log: Logger, onTick: () => void = () => {}) {
    this.#blockedMs = blockedMs;
    this.#everyMs = Math.min(500, blockedMs);
    this.#log = log;
    this.#onTick = onTick;
  }

  /** A second call does nothing. */
  start(): void {
    if (this.#timer !== null) return;
    this.#dueAt = monotonicMs() + this.#everyMs;
    this.#timer = detached(() => setInterval(() => this.#tick(), this.#everyMs));
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Whether the loop was blocked since this was asked last. */
  takeBlocked(): boolean {
    this.#look();
    const blocked = this.#worst >= this.#blockedMs;
    this.#worst = 0;
    return blocked;
  }

  #tick(): void {
    this.#look();
    this.#dueAt = monotonicMs() + this.#everyMs;
    this.#onTick();
  }

  #look(): void {
    const now = monotonicMs();
    const late = now - this.#dueAt;
    if (this.#timer === null || late <= this.#worst) return;
    this.#worst = late;
    if (late < this.#blockedMs || now - this.#loggedAt < LOG_EVERY_MS) return;
    this.#loggedAt = now;
    this.#log.warn({ blockedMs: Math.round(late) }, 'the event loop was blocked; a handler computes without a pause');
  }
}
