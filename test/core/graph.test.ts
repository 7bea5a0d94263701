import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { upstreamsFirst } from '../../src/core/dependency.ts';
import { type GraphTally, rollUp, summarize } from '../../src/core/graph.ts';
import { JOB_STATES } from '../../src/core/state.ts';

const AT = '2026-01-01 00:00:00+00';
const LATER = '2026-01-01 00:00:00.5+00';

const tally = fc.record<GraphTally>({
  state: fc.constantFrom(...JOB_STATES),
  n: fc.integer({ min: 1, max: 5 }),
  versions: fc.integer({ min: 1, max: 100 }),
  done: fc.double({ min: 0, max: 5, noNaN: true }),
  finishedAt: fc.constantFrom(null, AT, LATER),
  changedAt: fc.constantFrom(AT, LATER),
});

describe('a graph is rolled up', () => {
  test('to counts, a version and progress that are those of its nodes together', () => {
    fc.assert(
      fc.property(fc.array(tally), (tallies) => {
        const { state, counts, version, progress } = summarize(tallies);
        const total = tallies.reduce((sum, t) => sum + t.n, 0);
        expect(state).toBe(rollUp(tallies.map((t) => t.state)));
        expect([...counts.values()].reduce((a, b) => a + b, 0)).toBe(total);
        expect(version).toBe(tallies.reduce((sum, t) => sum + t.versions, 0));
        expect(progress?.total ?? 0).toBe(total);
      }),
    );
  });

  test('with an end exactly when all nodes have one: that of the last', () => {
    const node = { n: 1, versions: 1, done: 0, changedAt: AT };
    const ended = [
      { ...node, state: 'COMPLETED' as const, finishedAt: LATER },
      { ...node, state: 'FAILED' as const, finishedAt: AT },
    ];
    expect(summarize(ended)).toMatchObject({ state: 'FAILED', finishedAt: LATER, progress: { current: 2, total: 2 } });
    const running = { ...node, state: 'RUNNING' as const, done: 0.25, finishedAt: null };
    expect(summarize([...ended, running])).toMatchObject({
      state: 'RUNNING',
      finishedAt: null,
      progress: { current: 2.25, total: 3, unit: 'jobs' },
    });
    expect(summarize([])).toMatchObject({ state: 'COMPLETED', progress: null, finishedAt: null, version: 0 });
  });
});

test('upstreamsFirst gives every job behind those that it waits for, and loses none', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 15 }),
      fc.uniqueArray(fc.tuple(fc.nat(14), fc.nat(14)), { selector: ([a, b]) => a * 15 + b }),
      fc.array(fc.double({ noNaN: true }), { minLength: 15, maxLength: 15 }),
      (n, pairs, weights) => {
        const ids = Array.from({ length: n }, (_, i) => `${i}`).sort((a, b) => (weights[+a] ?? 0) - (weights[+b] ?? 0));
        // From lower to higher numbers only: never in a circle, whatever the order of the ids.
        const edges = pairs.filter(([a, b]) => a < b && b < n).map(([a, b]) => ({ upstream: `${a}`, id: `${b}` }));
        const ordered = upstreamsFirst(ids, edges);
        expect([...ordered].sort()).toEqual([...ids].sort());
        for (const { id, upstream } of edges) expect(ordered.indexOf(upstream)).toBeLessThan(ordered.indexOf(id));
      },
    ),
  );
});
