import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLogger } from '../../src/core/log.ts';
import type { AnyTask } from '../../src/core/task.ts';
import type { AttemptEnd, BeatAnswer, ClaimedJob } from '../../src/engine/types.ts';
import { Attempt } from '../../src/worker/attempt.ts';
import { createTimerBeater } from '../../src/worker/beater.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { Lease } from '../../src/worker/lease.ts';
import { Roster } from '../../src/worker/roster.ts';
import { monotonicMs } from '../../src/worker/timing.ts';

/** Ids must be ids, and readable. */
const A = '00000000-0000-7000-8000-00000000000a';
const B = '00000000-0000-7000-8000-00000000000b';
const WORKER = '00000000-0000-7000-8000-0000000000ff';

const task = defineTask({ name: 't', run: () => 1 }) as AnyTask;

/** A lease whose beats the test answers: the order of beats, claims and settles is what these rules are about. */
function setUp() {
  const roster = new Roster();
  const claims = { started: 0, finished: 0 };
  const beats: { answer(answer: BeatAnswer): Promise<void>; fail(): Promise<void> }[] = [];
  const released: AttemptEnd[] = [];
  const delivered: string[] = [];
  const calls: string[] = [];
  const lease = new Lease(
    {
      workerId: WORKER,
      execution: {
        beat: () =>
          new Promise((resolve, reject) =>
            beats.push({
              async answer(answer) {
                resolve(answer);
                await vi.advanceTimersByTimeAsync(0);
              },
              async fail() {
                reject(new Error('away'));
                await vi.advanceTimersByTimeAsync(0);
              },
            }),
          ),
        cancelDelivered: async (id) => void delivered.push(id),
        settle: async (end) => {
          released.push(end);
          return { status: 'settled', state: 'QUEUED' };
        },
      },
      newBeater: createTimerBeater,
      roster,
      claims,
      heartbeatMs: 100,
      leaseMs: 1_000,
      status: () => ({ busy: 0, draining: false, blocked: false }),
      onLost: () => calls.push('lost'),
      onRenewed: () => calls.push('renewed'),
      onError: () => {},
      log: silentLogger,
    },
    monotonicMs(),
  );
  const enter = (id: string, number = 1): Attempt => {
    const job = { id, attempt: number, stallTimeoutMs: null } as ClaimedJob;
    const attempt = new Attempt(job, task, WORKER);
    roster.enter(attempt);
    return attempt;
  };
  const next = async () => {
    const n = beats.length;
    while (beats.length === n) await vi.advanceTimersByTimeAsync(10);
    return beats[n] as (typeof beats)[number];
  };
  return { lease, roster, claims, beats, released, delivered, calls, enter, next };
}

const owns = (...ids: string[]): BeatAnswer => ({
  alive: true,
  jobs: ids.map((jobId) => ({ jobId, attempt: 1, cancel: null })),
});

describe('what an answer means', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  test('an attempt that is not named has lost its job, unless it was claimed after the beat was sent', async () => {
    const { lease, enter, beats, next } = setUp();
    const before = enter(A);
    await vi.advanceTimersByTimeAsync(1);
    lease.start();
    await vi.advanceTimersByTimeAsync(1);
    const after = enter(B);
    await beats[0]?.answer(owns());
    expect([before.lost, before.abortKind]).toEqual([true, 'lease-lost']);
    expect(after.lost).toBe(false);
    await (await next()).answer(owns(B));
    expect(after.lost).toBe(false);
    lease.stop();
  });

  test('an answer that makes the lease fresh again has jobs claimed again, and no other does', async () => {
    const { lease, beats, calls, next } = setUp();
    lease.start();
    await (await next()).answer(owns());
    await (await next()).answer(owns());
    expect(calls).toEqual([]);
    // Half the lease is over, and not the whole.
    const late = beats.length;
    while (lease.fresh) await (await next()).fail();
    expect([lease.alive, beats.length > late, calls]).toEqual([true, true, []]);
    await (await next()).answer(owns());
    expect([lease.fresh, calls]).toEqual([true, ['renewed']]);
    await (await next()).answer(owns());
    expect(calls).toEqual(['renewed']);
    lease.stop();
  });

  test('a job that is named but not known is handed back only when it is still unknown in a later answer', async () => {
    const { lease, released, next } = setUp();
    lease.start();
    await (await next()).answer(owns(A));
    expect(released).toEqual([]);
    await (await next()).answer(owns(A));
    expect(released).toEqual([{ jobId: A, attempt: 1, outcome: 'RELEASED' }]);
    await (await next()).answer(owns());
    expect(released).toHaveLength(1);
    lease.stop();
  });

  test('a job that may be of a claim under way is not handed back before that is answered', async () => {
    const { lease, claims, released, next, enter } = setUp();
    lease.start();
    claims.started = 1;
    for (let i = 0; i < 3; i++) await (await next()).answer(owns(B, A));
    expect(released).toEqual([]);
    claims.finished = 1;
    enter(B);
    await (await next()).answer(owns(B, A));
    expect(released).toEqual([]);
    await (await next()).answer(owns(B, A));
    expect(released.map((r) => r.jobId)).toEqual([A]);
    lease.stop();
  });

  test('a job that was named before its claim was answered, and ended while a later beat was under way, is not handed back', async () => {
    const { lease, claims, roster, released, next, enter } = setUp();
    lease.start();
    claims.started = 1;
    await (await next()).answer(owns(A));
    claims.finished = 1;
    const attempt = enter(A);
    const beat = await next();
    roster.leave(attempt);
    await beat.answer(owns(A));
    expect(released).toEqual([]);
    lease.stop();
  });

  test('a job that was settled while a beat was under way is not handed back', async () => {
    const { lease, roster, released, enter, next } = setUp();
    lease.start();
    for (let i = 0; i < 4; i++) {
      const attempt = enter(`${A.slice(0, -1)}${i}`);
      const beat = await next();
      roster.leave(attempt);
      await beat.answer(owns(`${A.slice(0, -1)}${i}`));
    }
    expect(released).toEqual([]);
    lease.stop();
  });

  test('a cancel is delivered once, and told again until the store has heard it', async () => {
    const { lease, delivered, enter, next } = setUp();
    const attempt = enter(A);
    lease.start();
    const cancel = { by: 'user:ada', reason: 'wrong file' };
    for (let i = 0; i < 3; i++) await (await next()).answer({ alive: true, jobs: [{ jobId: A, attempt: 1, cancel }] });
    expect(attempt.signal.reason).toMatchObject({
      kind: 'cancel',
      message: 'the job was canceled by user:ada: wrong file',
    });
    expect(delivered).toEqual([A]);
    lease.stop();
  });

  test('answers that come out of order do not count', async () => {
    const { lease, beats, enter } = setUp();
    lease.start();
    const attempt = enter(A);
    await vi.advanceTimersByTimeAsync(250);
    expect(beats).toHaveLength(3);
    await beats[2]?.answer(owns(A));
    await beats[0]?.answer(owns());
    expect(attempt.lost).toBe(false);
    lease.stop();
  });
});

describe('by its own clock', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  test('the lease lasts from the sending of the last beat that was answered', async () => {
    const { lease, enter, beats, next, calls } = setUp();
    const attempt = enter(A);
    lease.start();
    await vi.advanceTimersByTimeAsync(90);
    await beats[0]?.answer(owns(A));
    // Sent at 0, answered at 90: over at 1000.
    for (let i = 0; i < 8; i++) await (await next()).fail();
    await vi.advanceTimersByTimeAsync(999 - 90 - 800 + 80);
    while (attempt.lost === false) await vi.advanceTimersByTimeAsync(1);
    expect(attempt.abortKind).toBe('lease-lost');
    expect(lease.alive).toBe(false);
    await (await next()).answer(owns());
    expect(lease.alive).toBe(true);
    expect(calls).toEqual(['renewed']);
    lease.stop();
  });

  test('nothing is claimed in the second half of a lease that is not renewed; what was claimed may still start', async () => {
    const { lease, beats, next } = setUp();
    lease.start();
    await vi.advanceTimersByTimeAsync(1);
    await beats[0]?.answer(owns());
    expect([lease.fresh, lease.alive]).toEqual([true, true]);
    for (let i = 0; i < 6; i++) await (await next()).fail();
    expect([lease.fresh, lease.alive]).toEqual([false, true]);
    await (await next()).answer(owns());
    expect(lease.fresh).toBe(true);
    lease.stop();
  });

  test('a store that does not answer is sent three beats and no more', async () => {
    const { lease, beats } = setUp();
    lease.start();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(beats).toHaveLength(3);
    await beats[0]?.answer(owns());
    await vi.advanceTimersByTimeAsync(100);
    expect(beats).toHaveLength(4);
    lease.stop();
  });

  test('a nudge beats at once, or as soon as the beat under way is answered: that one may have been too early', async () => {
    const { lease, beats } = setUp();
    lease.start();
    lease.nudge();
    lease.nudge();
    expect(beats).toHaveLength(1);
    await beats[0]?.answer(owns());
    expect(beats).toHaveLength(2);
    await beats[1]?.answer(owns());
    expect(beats).toHaveLength(2);
    lease.nudge();
    expect(beats).toHaveLength(3);
    lease.stop();
  });

  test('one that the store knows as lost is over at once and for ever', async () => {
    const { lease, enter, beats, calls } = setUp();
    const attempt = enter(A);
    lease.start();
    await vi.advanceTimersByTimeAsync(1);
    await beats[0]?.answer({ alive: false, jobs: [] });
    expect(attempt.lost).toBe(true);
    expect([lease.alive, calls]).toEqual([false, ['lost']]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(beats).toHaveLength(1);
  });
});
