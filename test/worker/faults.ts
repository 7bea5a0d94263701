import { Unavailable } from '../../src/core/errors.ts';
import type { ExecutionEngine } from '../../src/engine/types.ts';

/** What happens to one call: it works, fails before it did anything, or does its work and the answer is lost. */
export type Fault = 'none' | 'before' | 'after';

/** The engine behind a store that fails: `choose` says how, call by call. */
export function faulty(execution: ExecutionEngine, choose: (verb: keyof ExecutionEngine) => Fault): ExecutionEngine {
  const verbs = Object.entries(execution) as [keyof ExecutionEngine, (...args: unknown[]) => Promise<unknown>][];
  const wrapped = verbs.map(([verb, call]) => [
    verb,
    async (...args: unknown[]) => {
      const fault = choose(verb);
      if (fault === 'before') throw new Unavailable('not sent');
      const answer = await call(...args);
      if (fault === 'after') throw new Unavailable('answer lost');
      return answer;
    },
  ]);
  return Object.fromEntries(wrapped) as unknown as ExecutionEngine;
}
