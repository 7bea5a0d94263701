import { describe, expect, test } from 'vitest';
import { newUuid } from '../../src/core/ids.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { deferred, eventually, within } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { mostAtOnce, narrowestMs, startsIn } from '../support/starts.ts';
import { type Bench, bench } from './bench.ts';

/** No poll comes to the rescue of what should have been told or foreseen. */
const NO_POLL = { options: { pollMs: 3_600_000 } };

describe.each(databases())('queues with limits under real workers on $name', (store) => {
  const quick = defineTask({ name: 'quick', run: () => null });

  const submitMany = async ({ engine }: Bench, queue: string, n: number, task = 'quick') =>
    (
      await engine.jobs.submitMany(
        me,
        Array.from({ length: n }, () => ({ task, queue })),
      )
    ).map((s) => s.jobId);
  const allEnd = async (b: Bench, ids: readonly string[]) => {
    for (const id of ids) expect((await b.ends(id)).state).toBe('COMPLETED');
  };
  /** A queue that has a limit before its first job comes. */
  async function limited(b: Bench, limits: Parameters<typeof b.engine.queues.update>[2]): Promise<string> {
    const queue = `queue-${newUuid()}`;
    const first = await b.submit(quick, undefined, { queue, delayMs: 3_600_000 });
    await b.engine.jobs.cancel(me, first);
    await b.engine.queues.update(me, queue, limits);
    return queue;
  }

  test('maxRunning: as soon as one ends the next starts, without a poll', async () => {
    const b = await bench(store);
    const queue = await limited(b, { maxRunning: 2 });
    for (let i = 0; i < 3; i++) await b.work([quick], { ...NO_POLL, concurrency: 5 });
    const ids = await submitMany(b, queue, 60);
    await allEnd(b, ids);
    expect(mostAtOnce(await startsIn(b.database.work, queue))).toBeLessThanOrEqual(2);
  });

  test('rate limit: a start that becomes free is used, without a poll', async () => {
    const b = await bench(store);
    const queue = await limited(b, { rateLimit: { max: 3, perMs: 250 } });
    for (let i = 0; i < 3; i++) await b.work([quick], { ...NO_POLL, concurrency: 5 });
    const ids = await submitMany(b, queue, 15);
    await allEnd(b, ids);
    const starts = await startsIn(b.database.work, queue);
    expect(starts).toHaveLength(15);
    expect(narrowestMs(starts, 3)).toBeGreaterThanOrEqual(250);
  });

  test('a worker that was idle takes the next by its poll when the one before ran elsewhere', async () => {
    const b = await bench(store);
    const queue = await limited(b, { maxRunning: 1 });
    const go = deferred();
    const held = defineTask({ name: 'held', run: () => go.promise });
    await b.work([held], NO_POLL);
    const first = await b.submit(held, undefined, { queue });
    await b.reaches(first, 'RUNNING');
    await b.work([quick], { options: { pollMs: 100 } });
    const second = await b.submit(quick, undefined, { queue });
    expect((await b.job(second)).state).toBe('QUEUED');
    go.resolve();
    expect((await b.ends(second)).state).toBe('COMPLETED');
    expect(mostAtOnce(await startsIn(b.database.work, queue))).toBe(1);
  });

  test('a limit that is raised or lifted, and a queue that goes on, wake idle workers at once', async () => {
    const b = await bench(store);
    const queue = await limited(b, { maxRunning: 1 });
    const go = deferred();
    const held = defineTask({ name: 'held', run: () => go.promise });
    await b.work([held], { ...NO_POLL, concurrency: 10 });
    const ids = await submitMany(b, queue, 6, 'held');
    const running = async (n: number) =>
      eventually(async () => {
        const states = await Promise.all(ids.map(async (id) => (await b.job(id)).state));
        expect(states.filter((s) => s === 'RUNNING')).toHaveLength(n);
      });
    await running(1);
    await b.engine.queues.update(me, queue, { maxRunning: 2 });
    await running(2);
    await b.engine.queues.update(me, queue, { maxRunning: 3, rateLimit: { max: 1, perMs: 3_600_000 } });
    await running(3);
    await b.engine.queues.pause(me, queue);
    await b.engine.queues.update(me, queue, { maxRunning: null, rateLimit: null });
    await b.submit(held, undefined, { queue: 'another' });
    expect((await Promise.all(ids.map((id) => b.job(id)))).filter((j) => j.state === 'RUNNING')).toHaveLength(3);
    await b.engine.queues.resume(me, queue);
    await running(6);
    go.resolve();
    await allEnd(b, ids);
  });

  test('a queue behind its limit holds up no other', async () => {
    const b = await bench(store);
    const go = deferred();
    const held = defineTask({ name: 'held', run: () => go.promise });
    const full = await limited(b, { maxRunning: 1 });
    const throttled = await limited(b, { rateLimit: { max: 1, perMs: 3_600_000 } });
    await b.work([held, quick], { ...NO_POLL, concurrency: 4 });
    const waiting = [...(await submitMany(b, full, 200, 'held')), ...(await submitMany(b, throttled, 200))];
    await b.reaches(waiting[0] as string, 'RUNNING');
    const others = await submitMany(b, 'free', 40);
    await within(20_000, allEnd(b, others), 'the end of the others');
    go.resolve();
  });

  test.each(['with', 'without'])(
    'where the other kind fills every slot, jobs of queues %s a limit get their turn',
    async (which) => {
      const b = await bench(store);
      let waiting: string | null = null;
      let overtaken = 0;
      const endless = defineTask({
        name: 'endless',
        // As many come as end: the line never runs empty.
        run: async () => {
          if (waiting !== null && (await b.job(waiting)).state === 'QUEUED') {
            overtaken++;
            await submitMany(b, busy, 1, 'endless');
          }
        },
      });
      const line = await limited(b, { maxRunning: 1_000 });
      await b.engine.execution.registerTasks([endless.definition]);
      const [busy, rare] = which === 'with' ? ['free', line] : [line, 'free'];
      await submitMany(b, busy, 20, 'endless');
      // Last in line by rank, too.
      waiting = await b.submit(quick, undefined, { queue: rare, priority: -100 });
      await b.work([endless, quick], { ...NO_POLL, concurrency: 2 });
      expect((await b.ends(waiting)).state).toBe('COMPLETED');
      expect(overtaken).toBeLessThan(20);
    },
  );
});
