import type { Attempt } from './attempt.ts';

/**
 * The attempts of a worker. Two things that mostly go together: it *speaks for* an attempt from its claim until its end
 * is recorded, and an attempt *holds a slot* until its handler has really ended, also one that was given up.
 */
export class Roster {
  readonly #spokenFor = new Set<Attempt>();
  readonly #holding = new Set<Attempt>();
  #whenQuiet: (() => void)[] = [];

  /** Attempts that hold a slot. */
  get held(): number {
    return this.#holding.size;
  }

  /** Attempts that this worker speaks for. */
  spokenFor(): Iterable<Attempt> {
    return this.#spokenFor.values();
  }

  /** The same by their keys. */
  byKey(): Map<string, Attempt> {
    return new Map([...this.#spokenFor].map((attempt) => [attempt.key, attempt]));
  }

  enter(attempt: Attempt): void {
    this.#spokenFor.add(attempt);
    this.#holding.add(attempt);
  }

  /** Its end is recorded, or is no longer this worker's affair. A second call does nothing. */
  leave(attempt: Attempt): void {
    if (!this.#spokenFor.delete(attempt) || this.#spokenFor.size > 0) return;
    for (const resolve of this.#whenQuiet.splice(0)) resolve();
  }

  /** Its handler has ended. */
  free(attempt: Attempt): void {
    this.#holding.delete(attempt);
  }

  /** Resolves when the worker speaks for no attempt. */
  quiet(): Promise<void> {
    if (this.#spokenFor.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenQuiet.push(resolve));
  }
}
