import { Slots } from '../db/slots.ts';
import type { Executor } from '../db/types.ts';

/** As many as there are connections for reads: what waits, waits here, where it can still be taken back. */
const AT_ONCE = 4;
const WAIT_MS = 10_000;

/**
 * The reads of a process for callers who may hang up. What a caller has asked for and what is not yet sent to the store
 * goes with him, so that he leaves no line of statements in front of those who stay.
 */
export class AttendedReads {
  readonly #slots = new Slots(AT_ONCE);
  readonly #db: Executor;

  constructor(db: Executor) {
    this.#db = db;
  }

  /** Reads for one caller; the signal that `gone` gives fires when he hangs up. It is asked for by the first read. */
  for(gone: () => AbortSignal | undefined): Executor {
    return {
      query: async (text, params) => {
        const leave = await this.#slots.take(WAIT_MS, gone());
        return this.#db.query<never>(text, params).finally(leave);
      },
    };
  }
}
