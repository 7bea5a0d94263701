import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { durationMs, formatDuration, MAX_DURATION_MS, parseDuration } from '../../src/core/duration.ts';

describe('durations', () => {
  test('what is printed is read back as the same number of milliseconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MAX_DURATION_MS }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });

  test.each([
    ['500ms', 500],
    ['5s', 5_000],
    ['1.5s', 1_500],
    ['10m', 600_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
  ])('%s is %i ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each(['', '5', 's', '-5s', '5 s', '5S', '1e3s', 'Infinityms', '9999999999d', '5s ', '٥s'])(
    '%j is no duration',
    (text) => {
      expect(parseDuration(text)).toBeNull();
      expect(() => durationMs(text, 'timeout')).toThrow('timeout must be a duration');
    },
  );
});
