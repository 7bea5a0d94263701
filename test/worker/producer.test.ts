import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLogger } from '../../src/core/log.ts';
import type { ClaimedJob, LimitedClaim } from '../../src/engine/types.ts';
import { Producer, type ProducerParts } from '../../src/worker/producer.ts';
import type { Roster } from '../../src/worker/roster.ts';
import { deferred } from '../support/eventually.ts';

const jobs = (n: number) =>
  Array.from({ length: n }, () => ({ id: 'j', attempt: 1, task: 't', place: ++place }) as ClaimedJob);
let place = 0;

/** When it asks, and for how many: the answers come from the test, the clock too. */
function setUp(over: Partial<ProducerParts> = {}) {
  const asked: { at: number; limit: number; from?: number | null | undefined }[] = [];
  let waiting = 0;
  let held = 0;
  let failing = false;
  const limited: { claimed: number; answers: LimitedClaim[] } = { claimed: 0, answers: [] };
  const began = performance.now();
  const producer = new Producer({
    execution: {
      async claim(_worker, { limit, from }) {
        asked.push({ at: performance.now() - began, limit, from });
        if (failing) throw new Error('away');
        const n = Math.min(limit, waiting);
        waiting -= n;
        return jobs(n);
      },
      async claimLimited() {
        limited.claimed++;
        return limited.answers.shift() ?? { jobs: [], full: [], lookAgainMs: null };
      },
    },
    roster: {
      get held() {
        return held;
      },
    } as Roster,
    concurrency: 10,
    queues: null,
    tasks: ['t'],
    pollMs: 1_000,
    workerId: () => 'w',
    start: () => held++,
    onError: () => {},
    log: silentLogger,
    ...over,
  });
  return {
    producer,
    asked,
    add: (n: number) => {
      waiting += n;
    },
    free: (n: number, queue = 'default') => {
      for (let i = 0; i < n; i++) {
        held--;
        producer.slotFreed(queue);
      }
    },
    limited,
    fail: (on: boolean) => {
      failing = on;
    },
    held: () => held,
  };
}

const hint = { queue: 'default', task: 't' };

describe('claims are made', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  test('once at start, then no faster than the poll while nothing happens', async () => {
    const { producer, asked } = setUp();
    producer.start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked.length).toBeGreaterThan(50);
    expect(asked.length).toBeLessThanOrEqual(61);
    for (const [i, { at }] of asked.slice(1).entries()) expect(at - (asked[i]?.at ?? 0)).toBeGreaterThanOrEqual(999);
    await producer.stop();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(asked.length).toBeLessThanOrEqual(61);
  });

  test('at once on a hint for a task and queue it serves, and not on others', async () => {
    const { producer, asked, add, held } = setUp({ queues: ['default'] });
    producer.start();
    await vi.advanceTimersByTimeAsync(10);
    producer.hint([
      { queue: 'other', task: 't' },
      { queue: 'default', task: 'unknown' },
    ]);
    await vi.advanceTimersByTimeAsync(10);
    expect(asked).toHaveLength(1);
    add(1);
    producer.hint([hint]);
    await vi.advanceTimersByTimeAsync(3);
    expect(asked.map((a) => a.limit)).toEqual([10, 10]);
    expect(held()).toBe(1);
  });

  test('never for more than the free slots, and not at all without one', async () => {
    const { producer, asked, add, held } = setUp();
    add(25);
    producer.start();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked.map((a) => a.limit)).toEqual([10]);
    expect(held()).toBe(10);
  });

  test('2 ms after the first slot became free behind a full batch, or at once when half of them are', async () => {
    const { producer, asked, add, free } = setUp();
    add(100);
    producer.start();
    await vi.advanceTimersByTimeAsync(100);
    const from = asked.length;
    free(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(asked.length).toBe(from);
    free(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(asked.slice(from).map((a) => a.limit)).toEqual([3]);
    free(5);
    await vi.advanceTimersByTimeAsync(0);
    expect(asked.slice(from).map((a) => a.limit)).toEqual([3, 5]);
  });

  test('not when a slot became free behind a short batch: nothing is waiting', async () => {
    const { producer, asked, add, free } = setUp();
    add(3);
    producer.start();
    await vi.advanceTimersByTimeAsync(10);
    free(3);
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toHaveLength(1);
  });

  test('again after a hint that came while all slots were busy or a claim was under way', async () => {
    const { producer, asked, add, free } = setUp({ concurrency: 1 });
    add(1);
    producer.start();
    await vi.advanceTimersByTimeAsync(10);
    add(1);
    producer.hint([hint]);
    await vi.advanceTimersByTimeAsync(10);
    expect(asked).toHaveLength(1);
    free(1);
    await vi.advanceTimersByTimeAsync(2);
    expect(asked).toHaveLength(2);
  });

  test('with growing pauses while the store fails, whatever the hints say, and at most 2 s apart', async () => {
    const { producer, asked, fail } = setUp();
    fail(true);
    producer.start();
    for (let i = 0; i < 600; i++) {
      producer.hint([hint]);
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(asked.length).toBeLessThan(60);
    const gaps = asked.slice(1).map(({ at }, i) => at - (asked[i]?.at ?? 0));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(2_100);
    fail(false);
    const from = asked.length;
    await vi.advanceTimersByTimeAsync(2_100);
    expect(asked.length).toBeGreaterThan(from);
  });

  test('not without a lease', async () => {
    let lease: string | null = null;
    const { producer, asked } = setUp({ workerId: () => lease });
    producer.start();
    await vi.advanceTimersByTimeAsync(3_000);
    expect(asked).toHaveLength(0);
    lease = 'w';
    producer.look();
    await vi.advanceTimersByTimeAsync(2);
    expect(asked).toHaveLength(1);
  });

  describe('by a busy worker behind the head of the line', () => {
    /** Has claimed so much that it is busy, and has its last look at the head just behind it. */
    async function busy(over: Partial<ProducerParts> = {}) {
      const made = setUp({ concurrency: 1_500, ...over });
      made.add(1_500);
      made.producer.start();
      await vi.advanceTimersByTimeAsync(10);
      made.free(1_500);
      await vi.advanceTimersByTimeAsync(10);
      expect(made.asked.at(-1)?.from).not.toBeNull();
      return made;
    }

    test('and then, once, at the head, though nothing tells of a job', async () => {
      const { asked } = await busy({ pollMs: 3_600_000 });
      const before = asked.length;
      await vi.advanceTimersByTimeAsync(10_000);
      expect(asked.slice(before).map(({ from }) => from)).toEqual([null]);
    });

    test('at the head, on a hint of what may stand ahead of others', async () => {
      const { asked, producer } = await busy();
      producer.hint([hint]);
      await vi.advanceTimersByTimeAsync(5);
      expect(asked.at(-1)?.from).not.toBeNull();
      producer.hint([{ ...hint, task: 'unknown', ahead: true }, hint]);
      await vi.advanceTimersByTimeAsync(5);
      expect(asked.at(-1)?.from).not.toBeNull();
      producer.hint([{ ...hint, ahead: true }]);
      await vi.advanceTimersByTimeAsync(5);
      expect(asked.at(-1)?.from).toBeNull();
    });

    test.each(['slot', 'lease'])('not again and again while there is no %s', async (missing) => {
      let looks = 0;
      let lease: string | null = 'w';
      const workerId = () => {
        looks++;
        return lease;
      };
      const { producer, asked, add, free } = await busy({ workerId });
      add(missing === 'slot' ? 2_000 : 1);
      producer.hint([hint]);
      await vi.advanceTimersByTimeAsync(5);
      if (missing === 'lease') lease = null;
      const [claims, before] = [asked.length, looks];
      await vi.advanceTimersByTimeAsync(10_000);
      expect(asked.length).toBe(claims);
      // The poll, and what asks beside it.
      expect(looks - before).toBeLessThan(50);
      lease = 'w';
      if (missing === 'slot') free(1);
      else producer.look();
      await vi.advanceTimersByTimeAsync(5);
      expect(asked.length).toBe(claims + 1);
    });
  });

  describe('of queues with limits', () => {
    const none = { jobs: [], full: [], lookAgainMs: null };

    test('for the slots that the others left, and in turn before them', async () => {
      const { producer, asked, add, limited, free, held } = setUp();
      add(100);
      producer.start();
      await vi.advanceTimersByTimeAsync(10);
      expect([asked.length, limited.claimed]).toEqual([1, 0]);
      limited.answers.push({ ...none, jobs: jobs(4) });
      free(10);
      await vi.advanceTimersByTimeAsync(1);
      expect(asked.map((a) => a.limit)).toEqual([10, 6]);
      expect([limited.claimed, held()]).toEqual([1, 10]);
    });

    test('again when a job of a full queue ended, and not when another did', async () => {
      const { producer, limited, free, add } = setUp();
      add(5);
      limited.answers.push({ ...none, full: ['q'] }, { ...none, full: ['q'] });
      producer.start();
      await vi.advanceTimersByTimeAsync(10);
      expect(limited.claimed).toBe(1);
      free(1, 'default');
      await vi.advanceTimersByTimeAsync(100);
      expect(limited.claimed).toBe(1);
      free(1, 'q');
      await vi.advanceTimersByTimeAsync(1);
      expect(limited.claimed).toBe(2);
      free(1, 'q');
      await vi.advanceTimersByTimeAsync(1);
      expect(limited.claimed).toBe(3);
      free(1, 'q');
      await vi.advanceTimersByTimeAsync(100);
      expect(limited.claimed).toBe(3);
    });

    test('again when such a job ended while the other claim was under way', async () => {
      const answered = deferred<ClaimedJob[]>();
      let claims = 0;
      let limited = 0;
      const { producer } = setUp({
        execution: {
          claim: async () => (++claims === 2 ? answered.promise : []),
          claimLimited: async () => ({ ...none, full: ++limited < 3 ? ['q'] : [] }),
        },
      });
      producer.start();
      await vi.advanceTimersByTimeAsync(10);
      producer.look();
      await vi.advanceTimersByTimeAsync(10);
      expect([claims, limited]).toEqual([2, 2]);
      producer.slotFreed('q');
      answered.resolve([]);
      await vi.advanceTimersByTimeAsync(10);
      expect([claims, limited]).toEqual([3, 3]);
    });

    test('when the next start is free, once', async () => {
      const { producer, asked, limited } = setUp();
      limited.answers.push({ ...none, lookAgainMs: 300 });
      producer.start();
      await vi.advanceTimersByTimeAsync(299);
      expect(limited.claimed).toBe(1);
      await vi.advanceTimersByTimeAsync(2);
      expect(limited.claimed).toBe(2);
      await vi.advanceTimersByTimeAsync(900);
      expect([limited.claimed, asked.length]).toEqual([2, 2]);
    });

    test('not again and again while all slots are taken when the next start is free', async () => {
      let looks = 0;
      const workerId = () => {
        looks++;
        return 'w';
      };
      const { producer, limited, add, free, held } = setUp({ workerId });
      limited.answers.push({ ...none, lookAgainMs: 300 }, { ...none, lookAgainMs: 300 });
      producer.start();
      await vi.advanceTimersByTimeAsync(10);
      add(10);
      producer.look();
      await vi.advanceTimersByTimeAsync(10);
      expect([limited.claimed, held()]).toEqual([2, 10]);
      const before = looks;
      await vi.advanceTimersByTimeAsync(10_000);
      expect(looks - before).toBeLessThan(50);
      free(1);
      await vi.advanceTimersByTimeAsync(5);
      expect(limited.claimed).toBe(3);
    });
  });
});
