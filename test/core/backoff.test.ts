import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Backoff, parseBackoff, retryDelay } from '../../src/core/backoff.ts';

const backoffs: fc.Arbitrary<Backoff> = fc.record({
  type: fc.constantFrom('fixed', 'exponential'),
  delayMs: fc.integer({ min: 0, max: 86_400_000 }),
  factor: fc.double({ min: 1, max: 100, noNaN: true }),
  maxMs: fc.integer({ min: 0, max: 864_000_000 }),
  jitter: fc.double({ min: 0, max: 1, noNaN: true }),
});
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe('the wait before a retry', () => {
  test('stays within its jitter of the capped base, for any policy and any number of failures', () => {
    fc.assert(
      fc.property(backoffs, fc.integer({ min: 1, max: 1000 }), random, (backoff, failures, r) => {
        const exponent = backoff.type === 'fixed' ? 0 : failures - 1;
        const growth = Math.min(backoff.factor ** exponent, Number.MAX_SAFE_INTEGER);
        const base = Math.min(backoff.delayMs * growth, backoff.maxMs);
        const delay = retryDelay(backoff, failures, r);
        expect(Number.isSafeInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(Math.floor(base * (1 - backoff.jitter)) - 1);
        expect(delay).toBeLessThanOrEqual(Math.ceil(base * (1 + backoff.jitter)) + 1);
      }),
    );
  });

  test('is 0 when the delay is, however many failures there were', () => {
    const backoff = { type: 'exponential', delayMs: 0, factor: 100, maxMs: 1_000, jitter: 1 } as const;
    expect([1, 2, 200, 1_000].map((failures) => retryDelay(backoff, failures, 0.9))).toEqual([0, 0, 0, 0]);
  });

  test('never shrinks with more failures, at the same random number', () => {
    fc.assert(
      fc.property(backoffs, fc.integer({ min: 1, max: 500 }), random, (backoff, failures, r) => {
        expect(retryDelay(backoff, failures + 1, r)).toBeGreaterThanOrEqual(retryDelay(backoff, failures, r));
      }),
    );
  });

  test('doubles from one second with the default policy, and stops at ten minutes', () => {
    const policy = parseBackoff({ type: 'exponential', delay: '1s', max: '10m' });
    const middle = 0.5;
    expect([1, 2, 3, 4, 20].map((n) => retryDelay(policy, n, middle))).toEqual([1_000, 2_000, 4_000, 8_000, 600_000]);
  });

  test('a wrong policy is refused by name', () => {
    expect(() => parseBackoff({ type: 'fixed', delay: 'soon' })).toThrow('backoff.delay');
    expect(() => parseBackoff({ type: 'fixed', delay: '1s', jitter: 2 })).toThrow('backoff.jitter');
    expect(() => parseBackoff({ type: 'exponential', delay: '1s', factor: 0 })).toThrow('backoff.factor');
    expect(() => parseBackoff({ type: 'linear' as 'fixed', delay: '1s' })).toThrow('backoff.type');
  });
});
