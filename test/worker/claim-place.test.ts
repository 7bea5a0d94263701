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
const quick = defineTask({ name: 'quick', run: () => undefined });

describe.each(databases())('a busy worker on $name', (store) => {
  test('runs what goes ahead of all others though nothing tells of it, and leaves nothing behind', async () => {
    const b = await bench(store);
    await b.engine.execution.registerTasks([quick.definition]);
    const submit = (count: number) =>
      b.engine.jobs.submitMany(
        me,
        Array.from({ length: count }, () => ({ task: 'quick' })),
      );
    for (let n = 0; n < MANY; n += 500) await submit(500);
    // No poll: what is found is found on a hint, or because the head of the line is due.
    await b.work([quick], { concurrency: 100, log: silentLogger, options: { pollMs: 3_600_000 } });
    const unfinished = async () => {
      const [row] = await b.database.read.query<{ n: number }>(
        `select count(*)::int as n from waymark.job_states where finished_at is null`,
      );
      return row?.n;
    };
    await eventually(async () => expect(await unfinished()).toBe(0), { timeoutMs: 60_000 });
    for (let round = 0; round < ROUNDS; round++) {
      await submit(20);
      const first = await b.submit(quick, undefined, { priority: 100 });
      expect((await b.ends(first)).state).toBe('COMPLETED');
    }
    await eventually(async () => expect(await unfinished()).toBe(0));
  });
});
