import { durationMs, MAX_DURATION_MS } from './duration.ts';

/** How long a failed job waits before its next attempt. */
export interface BackoffOptions {
  /** `fixed`: always `delay`. `exponential`: `delay × factor^(n−1)` before the n-th retry. */
  type: 'fixed' | 'exponential';
  /** Wait before the first retry. */
  delay: string | number;
  /** Default 2. */
  factor?: number;
  /** Upper bound before jitter. Default none (a hundred years). */
  max?: string | number;
  /** Share of the wait that is random, 0…1: 0.2 spreads it evenly over ±20 %. Default 0.2. */
  jitter?: number;
}

/** The parsed form, as stored. */
export interface Backoff {
  type: 'fixed' | 'exponential';
  delayMs: number;
  factor: number;
  maxMs: number;
  jitter: number;
}

export const DEFAULT_BACKOFF: Backoff = { type: 'exponential', delayMs: 1_000, factor: 2, maxMs: 600_000, jitter: 0.2 };

/**
 * Checks and completes a backoff written by a user.
 * @throws TypeError that names the option and the rule.
 */
export function parseBackoff(options: BackoffOptions): Backoff {
  const factor = options.factor ?? 2;
  const jitter = options.jitter ?? 0.2;
  if (options.type !== 'fixed' && options.type !== 'exponential') {
    throw new TypeError(`backoff.type must be "fixed" or "exponential", not ${JSON.stringify(options.type)}`);
  }
  if (!(factor >= 1 && factor <= 100)) throw new TypeError(`backoff.factor must be from 1 to 100, not ${factor}`);
  if (!(jitter >= 0 && jitter <= 1)) throw new TypeError(`backoff.jitter must be from 0 to 1, not ${jitter}`);
  return {
    type: options.type,
    delayMs: durationMs(options.delay, 'backoff.delay'),
    factor,
    maxMs: options.max === undefined ? MAX_DURATION_MS : durationMs(options.max, 'backoff.max'),
    jitter,
  };
}

/**
 * Milliseconds to wait before the next attempt.
 * @param failures failures of this run so far, the one just met included (1 before the first retry)
 * @param random a number in [0, 1), passed in so that the rule stays pure
 */
export function retryDelay(backoff: Backoff, failures: number, random: number): number {
  const exponent = backoff.type === 'fixed' ? 0 : Math.max(0, failures - 1);
  // Capped before it is multiplied: a delay of 0 times infinity would be no number.
  const growth = Math.min(backoff.factor ** exponent, Number.MAX_SAFE_INTEGER);
  const base = Math.min(backoff.delayMs * growth, backoff.maxMs);
  const spread = base * backoff.jitter * (2 * random - 1);
  return Math.round(Math.min(Math.max(0, base + spread), MAX_DURATION_MS));
}
