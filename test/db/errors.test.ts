import { describe, expect, test } from 'vitest';
import { InsideTransaction, Unavailable } from '../../src/core/errors.ts';
import { asThrown, isConnectionError, isRetryable, isUniqueViolation, sqlState } from '../../src/db/errors.ts';

const failed = (fields: object, cause?: unknown) => Object.assign(new Error('failed', { cause }), fields);

describe('reading what a database threw', () => {
  test('the SQLSTATE is found on the error or on what it wraps, and only a SQLSTATE', () => {
    expect(sqlState(failed({ code: '23505' }))).toBe('23505');
    expect(sqlState(failed({}, failed({ code: 'P0001' })))).toBe('P0001');
    for (const other of [failed({ code: 'EPIPE' }), failed({ code: 'CONNECTION_CLOSED' }), failed({}), null, 'text']) {
      expect(sqlState(other)).toBeUndefined();
    }
  });

  test('a unique violation is told by its constraint, under the name of either driver', () => {
    expect(isUniqueViolation(failed({ code: '23505', constraint_name: 'a' }), 'a')).toBe(true);
    expect(isUniqueViolation(failed({}, failed({ code: '23505', constraint: 'a' })), 'a')).toBe(true);
    expect(isUniqueViolation(failed({ code: '23505', constraint: 'b' }), 'a')).toBe(false);
    expect(isUniqueViolation(failed({ code: '23505' }))).toBe(true);
    expect(isUniqueViolation(failed({ code: '23514' }))).toBe(false);
  });

  test('deadlocks and serialization failures are retryable, nothing else', () => {
    expect(['40P01', '40001'].every((code) => isRetryable(failed({}, failed({ code }))))).toBe(true);
    expect(['40002', '23505', '57014'].some((code) => isRetryable(failed({ code })))).toBe(false);
  });

  test.each(['ECONNREFUSED', 'ECONNRESET', 'CONNECTION_CLOSED', 'CONNECT_TIMEOUT', '57P01', '57P03', '08006', '53300'])(
    '%s means that the store is away: Unavailable with the original as its cause',
    (code) => {
      const original = failed({ code });
      expect(isConnectionError(original)).toBe(true);
      expect(asThrown(original)).toBeInstanceOf(Unavailable);
      expect((asThrown(original) as Error).cause).toBe(original);
    },
  );

  test('a missing file is no lost connection, a missing socket is', () => {
    expect(isConnectionError(failed({ code: 'ENOENT', syscall: 'open' }))).toBe(false);
    expect(isConnectionError(failed({ code: 'ENOENT', syscall: 'connect' }))).toBe(true);
  });

  test('a statement that was stopped for time is Unavailable; everything else passes as it is', () => {
    expect(asThrown(failed({ code: '57014' }))).toMatchObject({ code: 'UNAVAILABLE', message: /in time/ });
    for (const other of [failed({ code: '23505' }), new InsideTransaction(), new Unavailable(), 'text']) {
      expect(asThrown(other)).toBe(other);
    }
  });
});
