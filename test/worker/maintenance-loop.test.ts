import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLogger } from '../../src/core/log.ts';
import { createMaintenanceLoop } from '../../src/worker/maintenance-loop.ts';

describe('maintenance', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  function setUp(
    over: { nextDueMs?: () => number | null; pruned?: () => number; takes?: number; fails?: () => boolean } = {},
  ) {
    const began: Record<string, number[]> = { stage: [], rescue: [], fold: [], prune: [] };
    let underWay = 0;
    const warnings: string[] = [];
    const pass =
      <T>(name: string, value: () => T) =>
      async () => {
        began[name]?.push(performance.now());
        if (name === 'prune') expect(++underWay).toBe(1);
        await new Promise((resolve) => setTimeout(resolve, over.takes ?? 0));
        if (name === 'prune') underWay--;
        if (over.fails?.()) throw new Error('away');
        return value();
      };
    const loop = createMaintenanceLoop({
      maintenance: {
        stage: pass('stage', () => ({ staged: 0, nextDueMs: over.nextDueMs?.() ?? null })),
        rescue: pass('rescue', () => ({ lostWorkers: 0, rescued: 0 })),
        followUp: async () => ({ done: 0 }),
        expire: async () => ({ expired: 0, nextDueMs: null }),
        fire: async () => ({ fired: 0, nextDueMs: null }),
        fold: pass('fold', () => ({ folded: 0 })),
        prune: pass('prune', () => ({ pruned: over.pruned?.() ?? 0 })),
      },
      log: { ...silentLogger, warn: (_data, message) => void warnings.push(message) },
      sweepMs: 5_000,
      pollMs: 1_000,
    });
    return { loop, began, warnings };
  }

  test('staging goes with the poll, the other passes with the sweep, never faster', async () => {
    const { loop, began } = setUp();
    loop.start();
    loop.start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(began.stage?.length).toBeGreaterThan(50);
    expect(began.stage?.length).toBeLessThanOrEqual(61);
    for (const name of ['rescue', 'fold', 'prune']) {
      expect(began[name]?.length).toBeGreaterThan(9);
      expect(began[name]?.length).toBeLessThanOrEqual(13);
    }
    await loop.stop();
  });

  test('what one pass of pruning leaves of a backlog is not left to the next sweep', async () => {
    const backlog = [5_000, 5_000, 600, 3];
    const { loop, began } = setUp({ pruned: () => backlog.shift() ?? 0 });
    loop.start();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(began.prune).toHaveLength(4);
    await vi.advanceTimersByTimeAsync(5_500);
    expect(began.prune).toHaveLength(5);
    await loop.stop();
  });

  test('a job is staged when it is due, not at the next poll', async () => {
    const due = [300, 0, null];
    const { loop, began } = setUp({ nextDueMs: () => due.shift() ?? null });
    loop.start();
    await vi.advanceTimersByTimeAsync(400);
    const [first = 0, ...rest] = began.stage ?? [];
    expect(rest.map((at) => Math.floor((at - first) / 10))).toEqual([30, 30]);
    await loop.stop();
  });

  test('a slow pass never overlaps with itself; stop waits for it, but not for long', async () => {
    const { loop, began } = setUp({ takes: 20_000 });
    loop.start();
    await vi.advanceTimersByTimeAsync(30_000);
    let stopped = false;
    const stopping = loop.stop().then(() => {
      stopped = true;
    });
    await vi.advanceTimersByTimeAsync(900);
    expect(stopped).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(stopped).toBe(true);
    await stopping;
    const passes = began.prune?.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(began.prune?.length).toBe(passes);
    await loop.stop();
  });

  test('errors end nothing and are logged now and then; after a stop it begins anew', async () => {
    let away = true;
    const { loop, began, warnings } = setUp({ fails: () => away });
    loop.start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(began.stage?.length).toBeGreaterThan(10);
    expect(began.stage?.length).toBeLessThan(100);
    expect(warnings.length).toBeLessThanOrEqual(4 * 7);
    away = false;
    await vi.advanceTimersByTimeAsync(6_000);
    await loop.stop();
    const before = began.rescue?.length ?? 0;
    loop.start();
    await vi.advanceTimersByTimeAsync(10);
    expect(began.rescue?.length).toBe(before + 1);
    await loop.stop();
  });
});
