import { Unavailable } from '../core/errors.ts';
import type { Logger } from '../core/log.ts';
import type { AttemptEnd, ExecutionEngine, SettleResult } from '../engine/types.ts';
import type { Attempt } from './attempt.ts';
import { errorText, MAX_ERROR_TEXT } from './error-record.ts';
import { whileUnavailable } from './retry.ts';
import { settledWithin, wait } from './timing.ts';
import type { Trouble } from './trouble.ts';

/** After the first try. */
const FIRST_WAIT_MS = 50;
/** Further tries of an end that the store refuses: it may have met a lock or a limit of the moment. */
const REFUSED_TRIES = 3;
/** How long the end of a canceled attempt waits for the rung before it, so that the ladder is told in order. */
const DELIVERY_WAIT_MS = 2_000;

/** Tells the store how attempts ended, as often as it takes. */
export class Settler {
  readonly #execution: Pick<ExecutionEngine, 'settle'>;
  readonly #log: Logger;
  readonly #trouble: Trouble;

  constructor(execution: Pick<ExecutionEngine, 'settle'>, log: Logger, trouble: Trouble) {
    this.#execution = execution;
    this.#log = log;
    this.#trouble = trouble;
  }

  /**
   * Repeats while the store is away and the attempt still owns its job; a repeat after a lost answer is answered as the
   * first call was. An end that the store cannot take is recorded as a failure in its place. Never rejects: null means
   * that nobody knows, and the beat will find out.
   */
  async settle(attempt: Attempt, end: AttemptEnd): Promise<SettleResult | null> {
    if (attempt.cancelDelivery) await settledWithin(attempt.cancelDelivery, DELIVERY_WAIT_MS);
    if (attempt.lost) return { status: 'lost' };
    try {
      const result = await attempt.unlessOver(this.#execution.settle(end));
      this.#trouble.ok();
      return result;
    } catch (error) {
      return this.#persist(attempt, end, error);
    }
  }

  /** After a first try that failed with `error`. */
  async #persist(attempt: Attempt, end: AttemptEnd, error: unknown): Promise<SettleResult | null> {
    if (error instanceof Unavailable) this.#trouble.failed(error);
    await wait(FIRST_WAIT_MS);
    const refused = await this.#try(attempt, end);
    if (!('error' in refused)) return refused.result;
    const replaced = await this.#try(attempt, this.#refusedEnd(end, refused.error));
    if (!('error' in replaced)) return replaced.result;
    this.#log.error({ err: replaced.error, ...attempt.names }, 'the end of an attempt cannot be recorded');
    return null;
  }

  async #try(attempt: Attempt, end: AttemptEnd): Promise<{ result: SettleResult } | { error: unknown }> {
    for (let tries = 1; ; tries++) {
      if (attempt.lost) return { result: { status: 'lost' } };
      try {
        const settling = whileUnavailable(
          () => this.#execution.settle(end),
          this.#trouble,
          () => !attempt.lost,
        );
        return { result: await attempt.unlessOver(settling) };
      } catch (error) {
        if (attempt.lost) return { result: { status: 'lost' } };
        if (tries >= REFUSED_TRIES) return { error };
      }
      await wait(100 * tries);
    }
  }

  #refusedEnd(end: AttemptEnd, error: unknown): AttemptEnd {
    return {
      jobId: end.jobId,
      attempt: end.attempt,
      outcome: 'FAILED',
      error: {
        code: 'RESULT_REFUSED',
        message: errorText(
          `the store refused the end of the attempt (${end.outcome}): ${errorText(error, 1_000)}`,
          MAX_ERROR_TEXT.message,
        ),
        retryable: false,
        stack: null,
        attempt: end.attempt,
        at: new Date().toISOString(),
      },
    };
  }
}
