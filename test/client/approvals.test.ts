import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { type Approval, createClient, type JobEvent, type WaymarkClient } from '../../src/client/index.ts';
import { createWaymark, defineTask, type RunningServer, type Waymark } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';

const gate = defineTask({
  name: 'gate',
  async run(ctx) {
    await ctx.step('draft', () => ctx.artifact('draft.md', '# Draft'));
    const { by, data } = await ctx.approval('editor', {
      title: 'Publish?',
      schema: z.object({ headline: z.string() }),
      approvers: ['user:ada', 'user:bob'],
      expiresIn: '1h',
    });
    return { by, headline: data.headline };
  },
});

let waymark: Waymark;
let server: RunningServer;
let ada: WaymarkClient<readonly [typeof gate]>;
let eve: typeof ada;

const as = (actor: string) =>
  createClient<readonly [typeof gate]>({ url: `${server.url}/graphql`, webSocket: WebSocket, actor });

beforeAll(async () => {
  waymark = await createWaymark({ dataDir: 'memory://', databaseUrl: null, redisUrl: null, poll: '100ms' });
  server = await waymark.serve({ port: 0, tasks: [gate] });
  await waymark.worker({ tasks: [gate] }).start();
  ada = as('user:ada');
  eve = as('user:eve');
});
afterAll(async () => {
  await Promise.all([ada, eve].map((client) => client.close()));
  await waymark.close();
});

/** A job that waits for its review, and what it asks. */
async function asking() {
  const job = await ada.submit('gate');
  const [approval] = await eventually(async () => {
    const now = await job.get();
    expect(now?.state).toBe('WAITING_FOR_REVIEW');
    expect(now?.waitingOn).toMatchObject({ kind: 'REVIEW', detail: expect.stringContaining('Publish?') });
    return now?.waitingOn?.approvals ?? [];
  });
  return { job, approval: approval as Approval };
}

test('what a job asks is found with it, in the list, and by its id; approved, the job goes on', async () => {
  const { job, approval } = await asking();
  expect(approval).toMatchObject({
    id: expect.stringMatching(/^apr_/),
    key: 'editor',
    state: 'OPEN',
    schema: { required: ['headline'] },
    approvers: ['user:ada', 'user:bob'],
    viewerCanDecide: true,
    job: { id: job.id, task: 'gate', state: 'WAITING_FOR_REVIEW' },
    decisions: [],
  });
  expect(await ada.approval(approval.id)).toEqual(approval);
  const mine = async (client: typeof ada) => (await client.approvals({ mine: true, jobId: job.id })).approvals;
  expect(await mine(ada)).toEqual([approval]);
  expect(await mine(eve)).toEqual([]);
  expect((await eve.approvals({ jobId: job.id }, { first: 1 })).approvals).toHaveLength(1);

  const { digest } = approval;
  const said = { data: { headline: 'News' }, comment: 'good', digest };
  const decided = await ada.approve(approval.id, said);
  expect(decided).toMatchObject({
    approval: { state: 'APPROVED', decidedBy: 'user:ada', comment: 'good' },
    job: { id: job.id },
  });
  expect((await ada.approve(job.id, said)).approval.state).toBe('APPROVED');
  expect(await job.result({ timeout: '20s' })).toEqual({ by: 'user:ada', headline: 'News' });
  expect((await ada.approvals({ jobId: job.id, states: ['APPROVED'], decidedBy: 'user:ada' })).approvals).toHaveLength(
    1,
  );

  const events: JobEvent[] = [];
  for await (const event of job.events()) events.push(event);
  const now = { id: approval.id, state: 'APPROVED' };
  expect(events.find((e) => e.type === 'ApprovalRequested')).toMatchObject({
    key: 'editor',
    title: 'Publish?',
    approval: now,
  });
  expect(events.find((e) => e.type === 'ApprovalDecided')).toMatchObject({
    key: 'editor',
    approvalState: 'APPROVED',
    approval: now,
    decision: { by: 'user:ada', verdict: 'APPROVED', comment: 'good', data: { headline: 'News' } },
  });
  expect(events.find((e) => e.type === 'ArtifactStored')).toMatchObject({ artifact: { name: 'draft.md', bytes: 7 } });
});

test('a rejection ends the job with its reason', async () => {
  const { job } = await asking();
  expect(await ada.reject(job.id, { key: 'editor', comment: 'dull' })).toMatchObject({
    approval: { state: 'REJECTED' },
  });
  await expect(job.result({ timeout: '20s' })).rejects.toMatchObject({ code: 'APPROVAL_REJECTED' });
});

test('refusals carry their code and what was said', async () => {
  const { job, approval } = await asking();
  const data = { headline: 'x' };
  await expect(eve.approve(job.id, { data })).rejects.toMatchObject({ name: 'RequestError', code: 'NOT_ALLOWED' });
  await expect(ada.approve(job.id, { data, digest: 'old' })).rejects.toMatchObject({
    code: 'STALE_APPROVAL',
    details: { approval: { id: approval.id, digest: approval.digest } },
  });
  await expect(ada.approve(job.id, { data: {} })).rejects.toMatchObject({
    code: 'INVALID_INPUT',
    issues: [{ path: expect.stringContaining('data') }],
  });
  await expect(ada.approve(approval.id, { data, key: 'editor' })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  await ada.reject(approval.id);
  await expect(as('user:bob').approve(job.id, { data })).rejects.toMatchObject({
    code: 'ALREADY_DECIDED',
    details: { approval: { state: 'REJECTED', decidedBy: 'user:ada' } },
  });
  const later = await ada.submit('gate', undefined, { delay: '1h' });
  await expect(ada.approve(later.id)).rejects.toMatchObject({
    code: 'NOT_WAITING',
    details: { job: { id: later.id, state: 'SCHEDULED' } },
  });
  await expect(ada.approve('apr_00000000000000000000000000')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(await ada.approval('apr_00000000000000000000000000')).toBeNull();
});
