import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DuplicateKeyError, NonRetryableError } from '../../src/core/handler-errors.ts';
import { stableKey, UsedKeys } from '../../src/worker/checkpoint-key.ts';

test('a stable key depends on job, epoch and name, and on nothing else', () => {
  const parts = fc.tuple(fc.uuid(), fc.nat(), fc.string());
  fc.assert(
    fc.property(parts, parts, (a, b) => {
      expect(stableKey(...a)).toMatch(/^[0-9a-f]{64}$/);
      expect(stableKey(...a) === stableKey(...b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      expect(stableKey(...a)).toBe(stableKey(...a));
    }),
  );
  // An outside service may hold these for years: a new version must not change them.
  expect(stableKey('0190c5d2-0000-7000-8000-000000000000', 1, 'mail')).toBe(
    '459827e222c0f2601a7c394319bf310a54e9ae56deb99f1712659339cddf5b08',
  );
});

test('a key serves one call; only values may be saved again under their own', () => {
  const keys = new UsedKeys();
  keys.use('a', 'STEP');
  keys.use('v', 'VALUE');
  keys.use('v', 'VALUE');
  for (const kind of ['STEP', 'CURSOR', 'VALUE'] as const) expect(() => keys.use('a', kind)).toThrow(DuplicateKeyError);
  expect(() => keys.use('v', 'STEP')).toThrow(DuplicateKeyError);
});

test.each([undefined, null, 7, '', 'k'.repeat(201), 'a\u0000', '\ud800'])('%j is no key', (key) => {
  expect(() => new UsedKeys().use(key as never, 'STEP')).toThrow(NonRetryableError);
});
