import { describe, expect, test } from 'vitest';
import { z } from 'zod';
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

  test('data that the form lets through and the schema refuses fails the job, and a retry from its key asks again', async () => {
    const b = await bench(store);
    const schema = z.object({ n: z.number().refine((n) => n > 5, 'too small') });
    const task = defineTask({
      name: 'refined',
      run: async (ctx) => (await ctx.approval('x', { title: 'X', schema })).data,
    });
    await b.work([task]);
    const id = await b.submit(task);
    const answer = async (n: number) => {
      await b.reaches(id, 'WAITING_FOR_REVIEW');
      await b.engine.approvals.decide(ada, { jobId: id, key: null }, 'APPROVED', { data: { n } });
      return b.ends(id);
    };
    const { state, error } = await answer(1);
    expect({ state, code: error?.code }).toEqual({ state: 'FAILED', code: 'INVALID_APPROVAL_DATA' });
    expect(error?.message).toMatch(/retry the job from the checkpoint "x" to ask again\): data\.n: too small/);
    await b.engine.jobs.retry(me, id, { fromCheckpoint: 'x' });
    expect((await answer(7)).state).toBe('COMPLETED');
    expect(await b.result(id)).toEqual({ n: 7 });
  });

  const bad: [rule: string, options: unknown][] = [
    ['the options must be an object with a title', null],
    ['title must be a text', { title: 5 }],
    ['title must not be empty', { title: '' }],
    ['body must be a text', { title: 'X', body: 5 }],
    ['approvers must be a list of texts', { title: 'X', approvers: 'user:ada' }],
    ['an approver must not be empty', { title: 'X', approvers: [''] }],
    ['an approver must be a text', { title: 'X', approvers: [5] }],
    ['requiredApprovals must be an integer', { title: 'X', requiredApprovals: 1.5 }],
    ['requiredApprovals is 2, but there are only 1', { title: 'X', approvers: ['user:ada'], requiredApprovals: 2 }],
    ['allowSubmitter must be true or false', { title: 'X', allowSubmitter: 'no' }],
    ['expiresIn', { title: 'X', expiresIn: 'soon' }],
    ['onExpire must be "fail", "reject" or "approve"', { title: 'X', expiresIn: '1h', onExpire: 'constructor' }],
    ['onExpire needs expiresIn', { title: 'X', onExpire: 'fail' }],
    ['onReject must be "throw" or "return"', { title: 'X', onReject: 'nonsense' }],
    ['notify must be a function', { title: 'X', notify: 'x' }],
    ['schema must be a Standard Schema', { title: 'X', schema: {} }],
  ];

  test('an option that breaks its rule fails the job at once, names the rule, and opens nothing', async () => {
    const b = await bench(store);
    const task = defineTask({
      name: 'odd',
      run: async (ctx, n) => {
        await ctx.approval('x', bad[n as number]?.[1] as never);
      },
    });
    await b.work([task]);
    const ids = await Promise.all(bad.map((_, n) => b.submit(task, n)));
    for (const [n, id] of ids.entries()) {
      const { state, error } = await b.ends(id);
      expect({ state, code: error?.code, retryable: error?.retryable }).toEqual({
        state: 'FAILED',
        code: 'INVALID_OPTION',
        retryable: false,
      });
      expect(error?.message).toContain(`approval "x": ${bad[n]?.[0]}`);
    }
    expect(await b.database.read.query('select 1 from waymark.approvals')).toEqual([]);
  });
});
