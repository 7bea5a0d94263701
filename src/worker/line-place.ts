import { monotonicMs } from './timing.ts';

/** For how long a claim may overlook a job that has gone ahead of others, such as one of a higher priority. */
const HEAD_EVERY_MS = 250;
/** A worker that claims more than this in a window begins behind the head of the line. */
const BUSY = 1_000;
const WINDOW_MS = 30_000;

/**
 * Where in the line a worker's claims begin. A claimed job's entry stays in the claim index, dead, until the table is
 * vacuumed (by a server's default not more than once a minute): at 5,000 jobs a second a claim from the head walks over
 * up to 300,000 of them, which takes longer than all else it does. So a busy worker begins where its last claim has
 * ended, and at the head four times a second. A claim takes the first in line of what it looks at: whatever one from the
 * head has left stands behind what it took, so that the claims that follow go on there, also through an old backlog.
 */
export class LinePlace {
  readonly #now: () => number;
  /** Where the last claim that brought something has ended; null before the first. */
  #place: number | null = null;
  /** When a claim from the head was last answered. */
  #headAt = Number.NEGATIVE_INFINITY;
  #behind = false;
  /** How often something was said to stand ahead; up to which of these the head was looked at, and is being looked at. */
  #told = 0;
  #toldSeen = 0;
  #toldAsked = 0;
  /** What was taken in the window under way, and in the one before. */
  #taken = 0;
  #takenBefore = 0;
  #windowEnd = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number = monotonicMs) {
    this.#now = now;
  }

  /** The place from which the next claim is to look; null: from the head. */
  next(): number | null {
    const now = this.#now();
    this.#turn(now);
    const busy = this.#taken + this.#takenBefore > BUSY;
    const headIsKnown = now < this.#headAt + HEAD_EVERY_MS && this.#toldSeen === this.#told;
    this.#behind = busy && headIsKnown && this.#place !== null;
    this.#toldAsked = this.#told;
    return this.#behind ? this.#place : null;
  }

  /** What that claim has taken. Not called when it failed. */
  took(jobs: readonly { place: number }[]): void {
    if (!this.#behind) {
      this.#headAt = this.#now();
      this.#toldSeen = this.#toldAsked;
    }
    this.#taken += jobs.length;
    if (jobs.length > 0) this.#place = jobs.reduce((last, { place }) => Math.max(last, place), 0);
  }

  /** Something may stand before the place: the next claim begins at the head. */
  ahead(): void {
    this.#told++;
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
