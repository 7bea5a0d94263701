import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/core/log.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { bench } from './bench.ts';

/** So many in half a minute that a claim no longer begins at the head of the line. */
const MANY = 1_500;
const ROUNDS = 20;
const BACKLOG = 1_000;
const quick = defineTask({ name: 'quick', run: () => undefined });

describe.each(databases())('a busy worker on $name', (store) => {
  /** Everything is done, and nothing is polled for: what is found is found on a hint, or because the head is due. */
  async function busyBench() {
    const b = await bench(store);
    await b.engine.execution.registerTasks([quick.definition]);
    const submit = (count: number, queue = 'default') =>
      b.engine.jobs.submitMany(
        me,
        Array.from({ length: count }, () => ({ task: 'quick', queue })),
      );
    const idle = (timeoutMs = 20_000) =>
      eventually(
        async () => {
          const [row] = await b.database.read.query<{ n: number }>(
            `select count(*)::int as n from waymark.job_states where finished_at is null`,
          );
          expect(row?.n).toBe(0);
        },
        { timeoutMs },
      );
    for (let n = 0; n < MANY; n += 500) await submit(500);
    await b.work([quick], { concurrency: 10, log: silentLogger, options: { pollMs: 3_600_000 } });
    await idle(60_000);
    return { b, submit, idle };
  }

  test('runs what goes ahead of all others though nothing tells of it, and leaves nothing behind', async () => {
    const { b, submit, idle } = await busyBench();
    for (let round = 0; round < ROUNDS; round++) {
      await submit(20);
      const first = await b.submit(quick, undefined, { priority: 100 });
      expect((await b.ends(first)).state).toBe('COMPLETED');
    }
    await idle();
  });

  test('runs the old backlog of a queue that goes on at full speed', async () => {
    const { b, submit, idle } = await busyBench();
    await submit(1, 'old');
    await idle();
    await b.engine.queues.pause(me, 'old');
    for (let n = 0; n < BACKLOG; n += 500) await submit(500, 'old');
    await b.database.maintenance.query(
      `update waymark.job_states set rank = rank - interval '1 hour' where state = 'QUEUED'`,
    );
    const began = performance.now();
    await b.engine.queues.resume(me, 'old');
    await idle(60_000);
    // By looks at the head alone: ten slots four times a second.
    expect(performance.now() - began).toBeLessThan((BACKLOG / 40) * 1_000);
  });
});
