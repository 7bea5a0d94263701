import type { Logger } from '../core/log.ts';
import { monotonicMs } from './timing.ts';

/** How a loop that must never end meets errors. */
export interface TroubleOptions {
  log: Logger;
  /** What cannot be done, as it reads in a log line: "claim jobs". */
  doing: string;
  /** Wait after the first error in a row; it doubles. Default 100 ms. */
  firstMs?: number;
  /** Longest wait. Default 2 s, so that everything is back soon after an outage. */
  maxMs?: number;
  onError?: ((error: unknown) => void) | undefined;
}

/** While an error goes on, one line in this many milliseconds. */
const LOG_EVERY_MS = 10_000;
/** What comes and goes is not logged more often than this either. */
const LOG_FIRST_MS = 2_000;

/** Counts errors in a row, says how long to wait, and logs the first, then one in ten seconds, then the recovery. */
export class Trouble {
  readonly #options: TroubleOptions;
  #errors = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #logged = false;

  constructor(options: TroubleOptions) {
    this.#options = options;
  }

  /** Notes an error; the milliseconds to wait before the next try, spread so that many do not come back at one instant. */
  failed(error: unknown): number {
    const { log, doing, firstMs = 100, maxMs = 2_000, onError } = this.#options;
    this.#errors++;
    const now = monotonicMs();
    if (now - this.#loggedAt >= (this.#errors === 1 ? LOG_FIRST_MS : LOG_EVERY_MS)) {
      this.#loggedAt = now;
      this.#logged = true;
      log.warn({ err: error, errors: this.#errors }, `cannot ${doing} now; trying again`);
    }
    onError?.(error);
    const delay = Math.min(maxMs, firstMs * 2 ** Math.min(this.#errors - 1, 30));
    return delay * (0.75 + Math.random() * 0.25);
  }

  /** Notes a success. */
  ok(): void {
    if (this.#logged) this.#options.log.info({ errors: this.#errors }, `can ${this.#options.doing} again`);
    this.#errors = 0;
    this.#logged = false;
  }
}
