import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LeaseLost, Unavailable } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/log.ts';
import { whileUnavailable } from '../../src/worker/retry.ts';
import { Trouble } from '../../src/worker/trouble.ts';

describe('errors of a loop', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  function setUp() {
    const lines: string[] = [];
    const log = {
      ...silentLogger,
      warn: (_: object, message: string) => void lines.push(message),
      info: (_: object, message: string) => void lines.push(message),
    };
    return { lines, trouble: new Trouble({ log, doing: 'claim jobs' }) };
  }

  test('wait longer each time, at most 2 s, and are logged once in ten seconds', () => {
    const { lines, trouble } = setUp();
    const waits: number[] = [];
    for (let i = 0; i < 100; i++) {
      waits.push(trouble.failed(new Error('x')));
      vi.advanceTimersByTime(300);
    }
    expect(waits[0]).toBeLessThanOrEqual(100);
    expect(Math.max(...waits)).toBeLessThanOrEqual(2_000);
    expect(waits.at(-1)).toBeGreaterThan(1_000);
    expect(lines).toEqual(Array(3).fill('cannot claim jobs now; trying again'));
    trouble.ok();
    trouble.ok();
    expect(lines.slice(3)).toEqual(['can claim jobs again']);
    expect(trouble.failed(new Error('x'))).toBeLessThanOrEqual(100);
  });

  test('that come and go do not flood the log', () => {
    const { lines, trouble } = setUp();
    for (let i = 0; i < 1_000; i++) {
      trouble.failed(new Error('x'));
      trouble.ok();
      vi.advanceTimersByTime(10);
    }
    expect(lines.length).toBeLessThanOrEqual(2 * 6);
  });

  test('a call is repeated while the store is away and somebody wants it, and not after another error', async () => {
    const { trouble } = setUp();
    let left = 3;
    const call = async () => {
      if (left-- > 0) throw new Unavailable();
      return 'there';
    };
    const got = whileUnavailable(call, trouble, () => true);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await got).toBe('there');

    left = 1_000;
    let wanted = true;
    const given = whileUnavailable(call, trouble, () => wanted).catch((error) => error);
    await vi.advanceTimersByTimeAsync(10_000);
    wanted = false;
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await given).toBeInstanceOf(Unavailable);
    const lost = whileUnavailable(
      () => Promise.reject(new LeaseLost('j', 1)),
      trouble,
      () => true,
    );
    await expect(lost).rejects.toBeInstanceOf(LeaseLost);
  });
});
