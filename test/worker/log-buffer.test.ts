import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Unavailable } from '../../src/core/errors.ts';
import { silentLogger } from '../../src/core/log.ts';
import type { LogWrite } from '../../src/engine/types.ts';
import { LogBuffer, MAX_LOG_MESSAGE } from '../../src/worker/log-buffer.ts';

const job = { id: 'j', attempt: 1 };

describe('log lines of handlers', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  function setUp() {
    const stored: LogWrite[] = [];
    const warned: unknown[] = [];
    const state = { away: false, writes: 0 };
    const buffer = new LogBuffer(
      {
        async appendLogs(lines) {
          state.writes++;
          if (state.away) throw new Unavailable();
          if (lines.some((line) => line.message === 'poison')) throw new Error('refused');
          stored.push(...lines);
        },
      },
      { ...silentLogger, warn: (data, message) => void warned.push({ ...data, message }) },
    );
    return { buffer, stored, warned, state };
  }

  test('are stored together within 250 ms, in order', async () => {
    const { buffer, stored, state } = setUp();
    for (let i = 0; i < 1_200; i++) buffer.add(job, 'info', `line ${i}`, { i });
    expect(state.writes).toBe(0);
    await vi.advanceTimersByTimeAsync(250);
    expect(state.writes).toBe(3);
    expect(stored.map((line) => line.message)).toEqual(Array.from({ length: 1_200 }, (_, i) => `line ${i}`));
    expect(stored[7]).toMatchObject({ jobId: 'j', attempt: 1, level: 'info', data: '{"i":7}' });
  });

  test('take bounded memory while the store is away; what was dropped is counted', async () => {
    const { buffer, stored, warned, state } = setUp();
    state.away = true;
    for (let i = 0; i < 20_000; i++) buffer.add(job, 'info', 'x'.repeat(100), undefined);
    await vi.advanceTimersByTimeAsync(60_000);
    state.away = false;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(stored.length).toBe(5_000);
    expect(warned).toContainEqual(expect.objectContaining({ lines: 15_000 }));
    expect(warned.length).toBeLessThan(15);
  });

  test('that the store refuses do not hold up those that come after', async () => {
    const { buffer, stored } = setUp();
    buffer.add(job, 'info', 'poison', undefined);
    await vi.advanceTimersByTimeAsync(250);
    buffer.add(job, 'info', 'next', undefined);
    await vi.advanceTimersByTimeAsync(500);
    expect(stored.map((line) => line.message)).toEqual(['next']);
  });

  test('never throw, and are cut', async () => {
    const { buffer, stored } = setUp();
    const unreadable = {
      toString() {
        throw new Error('no');
      },
    };
    buffer.add(job, 'warn', unreadable, undefined);
    buffer.add(job, 'warn', 'm'.repeat(100_000), 10n as never);
    await vi.advanceTimersByTimeAsync(250);
    expect(stored.map((line) => line.message.length)).toEqual([31, MAX_LOG_MESSAGE]);
    expect(stored[1]?.data).toContain('omitted');
  });

  test('are stored before the end, for a bounded time', async () => {
    const { buffer, stored, state } = setUp();
    buffer.add(job, 'info', 'last words', undefined);
    await buffer.stop(1_000);
    expect(stored).toHaveLength(1);
    state.away = true;
    buffer.add(job, 'info', 'lost words', undefined);
    await buffer.stop(1_000);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(stored).toHaveLength(1);
  });
});
