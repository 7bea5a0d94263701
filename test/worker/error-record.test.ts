import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NonRetryableError } from '../../src/core/handler-errors.ts';
import { textProblem } from '../../src/core/json.ts';
import { errorRecord, errorText, MAX_ERROR_TEXT } from '../../src/worker/error-record.ts';

const AT = new Date(0);

const throwing = (name: string): object =>
  Object.defineProperty({}, name, {
    get() {
      throw new Error('a getter throws');
    },
  });

const trap = (): never => {
  throw new Error('a trap throws');
};

/** Made anew each time, so that nobody but the record looks into them. */
const HOSTILE: (() => unknown)[] = [
  ...['message', 'code', 'name', 'stack', 'cause', 'toString'].map((name) => () => throwing(name)),
  () => new Proxy({}, { get: trap, has: trap, ownKeys: trap, getPrototypeOf: trap }),
  () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  () => () => 'a function',
  () => Symbol('x'),
  () => 10n,
  () => {
    const itself = new Error('itself');
    itself.cause = itself;
    return itself;
  },
];

test.each(HOSTILE)('a hostile value is recorded, too (%#)', (make) => {
  const record = errorRecord(make(), 1, AT);
  expect(record.code.length).toBeGreaterThan(0);
  expect(typeof record.message).toBe('string');
});

test('whatever is thrown gives a record of bounded, storable texts', () => {
  const anyValue = fc.oneof(
    fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSymbol: true,
    } as never),
    fc.string({ unit: 'binary', maxLength: 5_000 }).map((text) => new Error(text)),
    fc.record({
      message: fc.anything(),
      code: fc.anything(),
      name: fc.anything(),
      stack: fc.anything(),
      cause: fc.anything(),
    }),
    fc.array(fc.anything(), { maxLength: 20 }).map((errors) => new AggregateError(errors)),
  );
  fc.assert(
    fc.property(anyValue, (thrown) => {
      const record = errorRecord(thrown, 3, AT);
      expect(record).toMatchObject({ retryable: true, attempt: 3, at: '1970-01-01T00:00:00.000Z' });
      expect(record.code.length).toBeGreaterThan(0);
      for (const [text, max] of [
        [record.code, MAX_ERROR_TEXT.code],
        [record.message, MAX_ERROR_TEXT.message],
        [record.stack ?? '', MAX_ERROR_TEXT.stack],
        [errorText(thrown, 50), 50],
      ] as const) {
        expect(textProblem(text)).toBe(null);
        expect(text.length).toBeLessThanOrEqual(max);
      }
      JSON.stringify(record);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ['a text code', Object.assign(new Error('x'), { code: 'ENOENT' }), 'ENOENT'],
  ['no numeric code', Object.assign(new Error('x'), { code: 42 }), 'Error'],
  ['the name otherwise', new RangeError('x'), 'RangeError'],
  ['the code of NonRetryableError', new NonRetryableError('x', { code: 'CARD' }), 'CARD'],
  ['its name without one', new NonRetryableError('x'), 'NonRetryableError'],
  ['an odd name cut', Object.assign(new Error('x'), { name: 'n'.repeat(500) }), `${'n'.repeat(99)}…`],
  ['Error for what has none', 7, 'Error'],
])('the code is %s', (_, thrown, code) => {
  expect(errorRecord(thrown, 1, AT).code).toBe(code);
});

test('only NonRetryableError is not retryable', () => {
  expect(errorRecord(new NonRetryableError('x'), 1, AT).retryable).toBe(false);
  expect(errorRecord(Object.assign(new Error('x'), { name: 'NonRetryableError' }), 1, AT).retryable).toBe(true);
});

test('a message of megabytes does not push the frames out of the stack, and causes follow', () => {
  const { stack } = errorRecord(new Error('m'.repeat(5_000_000), { cause: new TypeError('root') }), 1, AT);
  expect(stack).toContain('error-record.test.ts');
  expect(stack).toContain('caused by: TypeError: root');
});

test('an AggregateError names its first errors and counts the rest', () => {
  const errors = Array.from({ length: 7 }, (_, i) => new Error(`e${i}`));
  expect(errorRecord(new AggregateError(errors, 'all'), 1, AT).message).toBe('all (e0; e1; e2; e3; e4; and 2 more)');
});
