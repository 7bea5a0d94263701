import { monotonicMs } from './timing.ts';

/** For how long a claim may overlook a job that has gone ahead of others: one of a higher priority, or handed back. */
const HEAD_EVERY_MS = 250;
/** A worker that claims more than this in a window begins behind the head of the line. */
const BUSY = 1_000;
const WINDOW_MS = 30_000;

/**
 * Where in the line a worker's claims begin. A claimed job's entry stays in the claim index, dead, until the table is
 * vacuumed (by a server's default not more than once a minute): at 5,000 jobs a second a claim from the head walks over
 * up to 300,000 of them, which takes longer than all else it does. So a busy worker begins where its last claim has
 * ended, and looks at the head four times a second.
 */
export class LinePlace {
  readonly #now: () => number;
  /** Of what the claims have taken, the last in line; null before the first. */
  #rank: string | null = null;
  #headAt = Number.NEGATIVE_INFINITY;
  #behind = false;
  /** What was taken in the window under way, and in the one before. */
  #taken = 0;
  #takenBefore = 0;
  #windowEnd = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number = monotonicMs) {
    this.#now = now;
  }

  /** The rank from which the next claim is to look; null: from the head. */
  next(): string | null {
    const now = this.#now();
    this.#turn(now);
    this.#behind = this.#rank !== null && now < this.#headAt + HEAD_EVERY_MS && this.#taken + this.#takenBefore > BUSY;
    if (!this.#behind) this.#headAt = now;
    return this.#behind ? this.#rank : null;
  }

  /** What that claim has taken: of what it looked at, the first in line. */
  took(jobs: readonly { rank: string; at: string }[]): void {
    this.#taken += jobs.length;
    for (const { rank, at } of jobs) {
      // A priority below zero has a rank in the future, behind which jobs are yet to come.
      let reached = rank;
      if (at < rank) reached = at;
      if (this.#rank === null || reached > this.#rank) this.#rank = reached;
    }
  }

  /** When the head is to be looked at again though nothing tells of a job; null: the last claim has. */
  get headDueAt(): number | null {
    return this.#behind ? this.#headAt + HEAD_EVERY_MS : null;
  }

  #turn(now: number): void {
    if (now < this.#windowEnd) return;
    this.#takenBefore = now < this.#windowEnd + WINDOW_MS ? this.#taken : 0;
    this.#taken = 0;
    this.#windowEnd = now + WINDOW_MS;
  }
}
