import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  AlreadyDecided,
  createWaymark,
  defineTask,
  InvalidId,
  InvalidInput,
  NotAllowed,
  NotFound,
  NotWaiting,
  StaleApproval,
  type Waymark,
} from '../src/index.ts';
import { eventually } from './support/eventually.ts';

const gate = defineTask({
  name: 'gate',
  run: async (ctx) => {
    const { by, data } = await ctx.approval('editor', {
      title: 'Publish?',
      schema: z.object({ headline: z.string() }),
      approvers: ['user:ada', 'group:editors'],
    });
    return { by, ...data };
  },
});

let waymark: Waymark;
beforeAll(async () => {
  waymark = await createWaymark({
    dataDir: 'memory://',
    databaseUrl: null,
    redisUrl: null,
    poll: '100ms',
    actor: 'user:shop',
  });
  await waymark.worker({ tasks: [gate] }).start();
});
afterAll(() => waymark.close());

const reaches = (id: string, state: string) =>
  eventually(async () => expect((await waymark.job(id))?.state).toBe(state), { timeoutMs: 20_000 });

async function asking(): Promise<string> {
  const { job } = await waymark.submit(gate);
  await reaches(job.id, 'WAITING_FOR_REVIEW');
  return job.id;
}

test('a back end says yes and no for its people', async () => {
  const id = await asking();
  const data = { headline: 'News' };
  await expect(waymark.approve(id, { data })).rejects.toThrow(NotAllowed);
  await expect(waymark.approve(id, { data, as: 'user:eve', groups: ['writers'] })).rejects.toThrow(NotAllowed);
  await expect(waymark.approve(id, { as: 'user:ada' })).rejects.toThrow(InvalidInput);
  for (const as of ['group:editors', 'ada', 'user:']) {
    await expect(waymark.approve(id, { data, as })).rejects.toThrow(/^as: must be user:NAME/);
    await expect(createWaymark({ actor: as, dataDir: 'memory://' })).rejects.toThrow(/actor=.* must be user:NAME/);
  }
  await expect(waymark.approve(id, { data, as: 'user:ada', digest: 'old' })).rejects.toThrow(StaleApproval);
  const decided = await waymark.approve(id, {
    data,
    as: 'user:bob',
    groups: ['editors'],
    comment: 'good',
    key: 'editor',
  });
  expect(decided).toMatchObject({
    approval: {
      id: expect.stringMatching(/^apr_/),
      jobId: id,
      key: 'editor',
      state: 'APPROVED',
      decidedBy: 'user:bob',
      comment: 'good',
      data,
      decisions: [{ by: 'user:bob', verdict: 'APPROVED', data }],
    },
    job: { id },
  });
  await reaches(id, 'COMPLETED');
  expect((await waymark.approve(decided.approval.id, { data, as: 'user:bob' })).approval).toEqual(decided.approval);
  await expect(waymark.reject(id, { as: 'user:ada' })).rejects.toThrow(AlreadyDecided);

  const other = await asking();
  expect(await waymark.reject(other, { as: 'user:ada', comment: 'dull' })).toMatchObject({
    approval: { state: 'REJECTED', comment: 'dull' },
  });
  await reaches(other, 'FAILED');
  expect((await waymark.job(other))?.error).toMatchObject({ code: 'APPROVAL_REJECTED' });
});

test('what asks nothing, and what is not there, is refused', async () => {
  const { job } = await waymark.submit(gate, undefined, { delay: '1h' });
  await expect(waymark.approve(job.id)).rejects.toThrow(NotWaiting);
  await expect(waymark.approve('job_00000000000000000000000000')).rejects.toThrow(NotFound);
  await expect(waymark.reject('apr_00000000000000000000000000')).rejects.toThrow(NotFound);
  await expect(waymark.approve('nothing')).rejects.toThrow(InvalidId);
});
