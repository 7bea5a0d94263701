import type { Attempt } from './attempt.ts';
import { monotonicMs } from './timing.ts';

/**
 * The attempts of a worker. Two things that mostly go together: it *speaks for* an attempt from its claim until its end
 * is recorded, and an attempt *holds a slot* until its handler has really ended, also one that was given up.
 */
export class Roster {
  readonly #spokenFor = new Map<string, Attempt>();
  readonly #holding = new Set<Attempt>();
  /** When the worker stopped speaking for an attempt: a beat that was sent before may still name it. */
  readonly #left = new Map<string, number>();
  #whenQuiet: (() => void)[] = [];

  /** Attempts that hold a slot. */
  get held(): number {
    return this.#holding.size;
  }

  /** Attempts that this worker speaks for. */
  spokenFor(): Iterable<Attempt> {
    return this.#spokenFor.values();
  }

  get(key: string): Attempt | undefined {
    return this.#spokenFor.get(key);
  }

  enter(attempt: Attempt): void {
    this.#spokenFor.set(attempt.key, attempt);
    this.#holding.add(attempt);
  }

  /** Its end is recorded, or is no longer this worker's affair. A second call does nothing. */
  leave(attempt: Attempt): void {
    if (!this.#spokenFor.delete(attempt.key)) return;
    this.#left.set(attempt.key, monotonicMs());
    if (this.#spokenFor.size > 0) return;
    for (const resolve of this.#whenQuiet.splice(0)) resolve();
  }

  /** Its handler has ended. */
  free(attempt: Attempt): void {
    this.#holding.delete(attempt);
  }

  /** Whether the worker spoke for an attempt at any time since `since` (of `monotonicMs`). */
  spokeForSince(key: string, since: number): boolean {
    return this.#spokenFor.has(key) || (this.#left.get(key) ?? Number.NEGATIVE_INFINITY) >= since;
  }

  /** Nobody will ask about times before `time` any more. */
  forget(time: number): void {
    for (const [key, left] of this.#left) if (left < time) this.#left.delete(key);
  }

  /** Resolves when the worker speaks for no attempt. */
  quiet(): Promise<void> {
    if (this.#spokenFor.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenQuiet.push(resolve));
  }
}
