import { describe, expect, test } from 'vitest';
import {
  allows,
  isTerminal,
  JOB_STATES,
  TERMINAL_STATES,
  TRANSITIONS,
  UNFINISHED_STATES,
  type Verb,
} from '../../src/core/state.ts';

const verbs = Object.keys(TRANSITIONS) as Verb[];

describe('the state machine', () => {
  test('only retry and revive leave a terminal state', () => {
    for (const verb of verbs) {
      const leaves = TRANSITIONS[verb].from.some((s) => s !== null && isTerminal(s));
      expect(leaves, verb).toBe(verb === 'retry' || verb === 'revive');
    }
  });

  test('every state can be reached from submit, and every unfinished one can end', () => {
    const reach = (from: ReadonlySet<string | null>) => {
      const seen = new Set<string | null>(from);
      for (let grown = true; grown; ) {
        const before = seen.size;
        for (const verb of verbs) {
          if (TRANSITIONS[verb].from.some((s) => seen.has(s))) for (const s of TRANSITIONS[verb].to) seen.add(s);
        }
        grown = seen.size > before;
      }
      return seen;
    };
    expect([...reach(new Set([null]))].filter(Boolean).sort()).toEqual([...JOB_STATES].sort());
    for (const state of UNFINISHED_STATES) {
      const ends = reach(new Set([state]));
      for (const terminal of TERMINAL_STATES) expect(ends.has(terminal), `${state} → ${terminal}`).toBe(true);
    }
  });

  test('every unfinished state can be canceled, no finished one', () => {
    for (const state of JOB_STATES) expect(allows('cancel', state), state).toBe(!isTerminal(state));
  });

  test('every edge out of RUNNING but success and claim-like moves may end in CANCELED', () => {
    for (const verb of verbs) {
      const { from, to } = TRANSITIONS[verb];
      if ((from as readonly unknown[]).includes('RUNNING') && verb !== 'complete')
        expect(to, verb).toContain('CANCELED');
    }
  });
});
