import './dom.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWaymark, defineTask, type RunningServer, type Waymark } from '../../src/index.ts';
import { useApproval, useApprovals, useJobActions } from '../../src/react/index.ts';
import { eventually } from '../support/eventually.ts';
import { connect, mount } from './page.ts';

const gate = defineTask({
  name: 'gate',
  run: async (ctx) => (await ctx.approval('editor', { title: 'Publish?', approvers: ['user:ada', 'user:bob'] })).by,
});

let waymark: Waymark;
let server: RunningServer;

beforeAll(async () => {
  waymark = await createWaymark({ dataDir: 'memory://', databaseUrl: null, redisUrl: null, poll: '100ms' });
  server = await waymark.serve({ port: 0, tasks: [gate] });
  await waymark.worker({ tasks: [gate] }).start();
});
afterAll(() => waymark.close());

test('an inbox, one approval, and the job: each shows what may be done, by whom', async () => {
  const [ada, eve] = ['user:ada', 'user:eve'].map((actor) => connect(`${server.url}/graphql`, { actor }));
  if (!ada || !eve) throw new Error('nobody there');
  const inbox = mount(ada, () => useApprovals({ mine: true }));
  const nothing = mount(eve, () => useApprovals({ mine: true }));
  await eventually(() => expect(inbox.now()).toMatchObject({ data: [], openCount: 0, isLoading: false }));

  const { id: jobId } = await ada.submit('gate');
  await eventually(() =>
    expect(inbox.now()).toMatchObject({ data: [{ title: 'Publish?', state: 'OPEN' }], openCount: 1 }),
  );
  expect(nothing.now()).toMatchObject({ data: [], openCount: 0 });
  const id = inbox.now().data?.[0]?.id;

  const [mine, hers] = [mount(ada, () => useApproval(id)), mount(eve, () => useApproval(id))];
  const actions = mount(ada, () => useJobActions(jobId));
  await eventually(() => {
    expect(mine.now()).toMatchObject({ data: { id }, approve: expect.any(Function), reject: expect.any(Function) });
    expect(hers.now()).toMatchObject({ data: { id }, approve: undefined, reject: undefined });
    expect(actions.now()).toMatchObject({ approve: expect.any(Function), retry: undefined });
  });
  const early = mine.now();
  await mine.now().approve?.({ comment: 'good' });
  await eventually(() => {
    expect(mine.now()).toMatchObject({ data: { state: 'APPROVED', comment: 'good' }, approve: undefined });
    expect(hers.now().data).toMatchObject({ state: 'APPROVED', decidedBy: 'user:ada' });
    expect(inbox.now()).toMatchObject({ data: [], openCount: 0 });
    expect(actions.now()).toMatchObject({ data: ['RETRY'], approve: undefined });
  });
  // Pressed by somebody whose page was a moment behind.
  await expect(early.reject?.()).rejects.toMatchObject({ code: 'ALREADY_DECIDED' });
  await eventually(() => expect(mine.now()).toMatchObject({ error: { code: 'ALREADY_DECIDED' }, isDeciding: false }));
});

test('an approval that is not there is an error', async () => {
  const page = mount(connect(`${server.url}/graphql`), () => useApproval('apr_00000000000000000000000000'));
  await eventually(() => expect(page.now()).toMatchObject({ error: { code: 'NOT_FOUND' }, isLoading: false }));
});
