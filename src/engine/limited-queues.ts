import { limitedQueues } from '../db/reads/queue-limits.ts';
import type { Executor } from '../db/types.ts';

/** A process that is not told of a queue's first limit claims from it this much later. */
const TTL_MS = 1_000;

/** Which queues have a limit, as far as a claim must know. */
export interface LimitedQueues {
  /** Names, at most a second old; the limits themselves are read with each claim. */
  names(): Promise<readonly string[]>;
  /** What is known is out of date. */
  forget(): void;
}

export function createLimitedQueues(db: Executor): LimitedQueues {
  let known: { names: Promise<readonly string[]>; until: number } | null = null;
  return {
    names() {
      if (known === null || known.until <= performance.now()) {
        const names = limitedQueues(db);
        const asked = { names, until: performance.now() + TTL_MS };
        names.catch(() => {
          if (known === asked) known = null;
        });
        known = asked;
      }
      return known.names;
    },
    forget() {
      known = null;
    },
  };
}
