import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ProgressState, progressEta, progressFraction } from '../../src/core/progress.ts';

const states: fc.Arbitrary<ProgressState> = fc.record({
  stage: fc.constant(null),
  stageIndex: fc.constant(null),
  stageCount: fc.constant(null),
  nextStage: fc.constant(null),
  current: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
  total: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
  unit: fc.constant(null),
  message: fc.constant(null),
  data: fc.constant(null),
  ratePerSecond: fc.option(fc.double({ min: 0, noNaN: true, noDefaultInfinity: true })),
  updatedAt: fc.constant('2026-01-01T00:00:00.000Z'),
});

test('a fraction is null or from 0 to 1, and an estimate null or not negative, whatever was reported', () => {
  fc.assert(
    fc.property(states, (p) => {
      const fraction = progressFraction(p);
      if (fraction !== null) {
        expect(fraction).toBeGreaterThanOrEqual(0);
        expect(fraction).toBeLessThanOrEqual(1);
      }
      const eta = progressEta(p);
      if (eta !== null) expect(eta).toBeGreaterThanOrEqual(0);
    }),
  );
});

test('half way at ten a second leaves five seconds of fifty', () => {
  const p = { current: 50, total: 100, ratePerSecond: 10 } as ProgressState;
  expect(progressFraction(p)).toBe(0.5);
  expect(progressEta(p)).toBe(5);
  expect(progressEta({ ...p, ratePerSecond: 0 })).toBeNull();
});
