import { describe, expect, test } from 'vitest';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { bench } from './bench.ts';

const ada = { ...me, actor: 'user:ada' };

describe.each(databases())('what approvals ask, on $name', (store) => {
  test('notify runs once for each approval that is opened, also for the one that a retry opens', async () => {
    const b = await bench(store);
    const told: string[] = [];
    const task = defineTask({
      name: 'tell',
      run: async (ctx) => (await ctx.approval('x', { title: 'X', notify: ({ id }) => void told.push(id) })).by,
    });
    await b.work([task]);
    const id = await b.submit(task);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    await b.engine.approvals.decide(ada, { jobId: id, key: null }, 'REJECTED', {});
    await b.ends(id);
    await b.engine.jobs.retry(me, id);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    await b.engine.approvals.decide(ada, { jobId: id, key: null }, 'APPROVED', {});
    expect((await b.ends(id)).state).toBe('COMPLETED');
    await eventually(() => expect(new Set(told).size).toBe(2));
    expect(told).toHaveLength(2);
  });
});
