import { describe, expect, test } from 'vitest';
import { FAULT_KINDS, planFaults } from './schedule.ts';

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

describe('the schedule of faults', () => {
  test('is the same for the same seed, and another for another', () => {
    expect(planFaults(7, 3)).toEqual(planFaults(7, 3));
    expect(planFaults(7, 3)).not.toEqual(planFaults(8, 3));
  });

  test.each([1, 1.5, 3, 30])('has every kind in every minute, in order and within its time: %d min', (minutes) => {
    for (const seed of SEEDS) {
      const faults = planFaults(seed, minutes);
      const times = faults.map((fault) => fault.atMs);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      expect(Math.max(...faults.map((fault) => fault.atMs + fault.holdMs))).toBeLessThan(minutes * 60_000 + 1_000);
      for (const kind of FAULT_KINDS) {
        const n = faults.filter((fault) => fault.kind === kind && !fault.calm).length;
        expect(n).toBeGreaterThanOrEqual(Math.floor(minutes));
      }
    }
  });

  test('leaves a calm around the kills by which recovery is measured', () => {
    for (const seed of SEEDS) {
      const faults = planFaults(seed, 3);
      const calm = faults.filter((fault) => fault.calm);
      expect(calm).toHaveLength(3);
      for (const { atMs } of calm) {
        const near = faults.filter((f) => !f.calm && f.atMs + f.holdMs > atMs - 4_000 && f.atMs < atMs + 5_000);
        expect(near).toEqual([]);
      }
    }
  });
});
