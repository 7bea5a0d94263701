import { beforeAll, describe, expect, test } from 'vitest';
import { publicId } from '../../src/core/ids.ts';
import type { ApprovalOpening } from '../../src/engine/types.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { SocketClient } from './clients.ts';
import { type HandWorker, handWorker } from './hand-worker.ts';
import { type Service, startService } from './service.ts';

const DECIDE = (verb: 'approveJob' | 'rejectJob') => `mutation ($input: DecideInput!) { answer: ${verb}(input: $input) {
  __typename
  ... on DecidePayload { approval { id state version decidedBy comment data decisions { by verdict comment data } }
    job { id state actions } }
  ... on UserError { code message }
  ... on NotWaiting { job { id state } }
  ... on AlreadyDecided { approval { state decidedBy } }
  ... on StaleApproval { approval { digest title } }
  ... on InvalidInput { issues { path message } } } }`;
const JOB = `query ($id: ID!) { job(id: $id) { state actions approvals { id key state version viewerCanDecide job { id } }
  waitingOn { kind detail until approvals { key } }
  events { nodes { __typename ... on ApprovalRequested { key title approval { state } }
    ... on ApprovalDecided { key approvalState decision { by verdict } approval { state } } } } } }`;
const LIST = `query ($filter: ApprovalFilter, $orderBy: ApprovalOrder, $first: Int, $after: String) {
  approvals(filter: $filter, orderBy: $orderBy, first: $first, after: $after) {
    nodes { id key title } totalCount pageInfo { hasNextPage endCursor } } }`;
const WATCH = `subscription ($filter: ApprovalFilter) {
  approvalsChanged(filter: $filter) { reset openCount approvals { id key state version } } }`;

describe.each(databases())('approvals by GraphQL on $name', ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  /** A job that waits for answers to these questions. */
  async function asking(...questions: (Partial<ApprovalOpening> & { key: string })[]) {
    const { jobId } = await service.engine.jobs.submit(me, { task: 'echo' });
    const id = publicId('Job', jobId);
    const { attempt } = await worker.start(id);
    const approvalIds: string[] = [];
    for (const { key, ...over } of questions) {
      const opened = await service.engine.execution.openApproval({
        ...{ jobId, attempt, key, title: `About ${key}`, body: null, schema: null, approvers: [] },
        ...{ requiredApprovals: 1, allowSubmitter: true, onExpire: 'FAIL', expiresInMs: null },
        ...over,
      });
      approvalIds.push(opened.id);
    }
    const wait = { kind: 'REVIEW', detail: 'Waits', approvalIds } as const;
    await service.engine.execution.settle({ jobId, attempt, outcome: 'SUSPENDED', wait });
    return { id, approvals: approvalIds.map((a) => publicId('Approval', a)) };
  }
  const decide = async (verb: 'approveJob' | 'rejectJob', input: object, actor = 'user:ada') =>
    (await service.post(DECIDE(verb), { input }, { 'x-waymark-actor': actor })).data.answer;
  const look = async (id: string, actor = 'user:ada') =>
    (await service.post(JOB, { id }, { 'x-waymark-actor': actor })).data.job;

  test('a job that waits says for what, offers the decision, and goes on when it is given', async () => {
    const { id, approvals } = await asking({ key: 'publish' });
    const waiting = await look(id);
    expect(waiting).toMatchObject({
      state: 'WAITING_FOR_REVIEW',
      actions: ['CANCEL', 'APPROVE', 'REJECT'],
      waitingOn: { kind: 'REVIEW', detail: 'Waits for a decision: About publish.', until: null },
      approvals: [{ id: approvals[0], key: 'publish', state: 'OPEN', viewerCanDecide: true, job: { id } }],
    });
    expect(waiting.waitingOn.approvals).toEqual([{ key: 'publish' }]);
    const answer = await decide('approveJob', { jobId: id, comment: 'fine', data: { n: [1, null] } });
    expect(answer).toMatchObject({
      __typename: 'DecidePayload',
      approval: { state: 'APPROVED', decidedBy: 'user:ada', comment: 'fine', data: { n: [1, null] } },
      job: { id, state: 'QUEUED' },
    });
    const { events } = await look(id);
    expect(events.nodes.slice(-2)).toMatchObject([
      {
        __typename: 'ApprovalDecided',
        approvalState: 'APPROVED',
        decision: { by: 'user:ada', verdict: 'APPROVED' },
        approval: { state: 'APPROVED' },
      },
      { __typename: 'JobQueued' },
    ]);
    expect(await decide('approveJob', { approvalId: approvals[0] })).toMatchObject({ __typename: 'DecidePayload' });
    expect(await decide('rejectJob', { approvalId: approvals[0] }, 'user:bob')).toMatchObject({
      __typename: 'AlreadyDecided',
      approval: { state: 'APPROVED', decidedBy: 'user:ada' },
    });
  });

  test.each([
    [{}, 'approvalId', 'exactly one'],
    [{ jobId: 'JOB', approvalId: 'APPROVAL' }, 'approvalId', 'exactly one'],
    [{ approvalId: 'APPROVAL', key: 'a' }, 'key', 'with jobId only'],
    [{ jobId: 'JOB' }, 'key', 'several are open: a, b'],
    [{ jobId: 'JOB', key: 'c' }, 'key', 'open ones: a, b'],
    [{ jobId: 'JOB', key: 'a', comment: 'x'.repeat(2_001) }, 'comment', '2000'],
    [{ jobId: 'JOB', key: 'a', data: { n: 'x' } }, 'data.n', 'must be number'],
    [{ jobId: 'JOB', key: 'a' }, 'data', 'is required'],
  ])('what is wrong with %o is said, and nothing is changed', async (input, path, rule) => {
    const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const { id, approvals } = await asking({ key: 'a', schema }, { key: 'b' });
    const text = JSON.stringify(input).replace('"JOB"', `"${id}"`).replace('"APPROVAL"', `"${approvals[0]}"`);
    const answer = await decide('approveJob', JSON.parse(text));
    expect(answer.issues).toEqual([{ path, message: expect.stringContaining(rule) }]);
    expect((await look(id)).approvals).toMatchObject([{ version: 1 }, { version: 1 }]);
  });

  test('a stale digest, a person who may not and a job that does not wait are told by type', async () => {
    const { id, approvals } = await asking({ key: 'a', approvers: ['user:bob'] });
    expect(await decide('approveJob', { jobId: id })).toMatchObject({ __typename: 'NotAllowed', code: 'NOT_ALLOWED' });
    expect((await look(id)).actions).toEqual(['CANCEL']);
    expect((await look(id, 'user:bob')).actions).toEqual(['CANCEL', 'APPROVE', 'REJECT']);
    const stale = await decide('approveJob', { approvalId: approvals[0], digest: 'old' }, 'user:bob');
    expect(stale).toMatchObject({ __typename: 'StaleApproval', approval: { title: 'About a' } });
    const right = { approvalId: approvals[0], digest: stale.approval.digest };
    expect(await decide('approveJob', right, 'user:bob')).toMatchObject({ __typename: 'DecidePayload' });
    const { jobId } = await service.engine.jobs.submit(me, { task: 'echo' });
    const other = publicId('Job', jobId);
    expect(await decide('approveJob', { jobId: other })).toMatchObject({
      __typename: 'NotWaiting',
      job: { id: other, state: 'QUEUED' },
    });
    const nobody = publicId('Job', '01990000-0000-7000-8000-000000000000');
    expect(await decide('approveJob', { jobId: nobody })).toMatchObject({ __typename: 'NotFound' });
  });

  test('the list shows what the viewer may decide, most urgent first, page by page', async () => {
    const mine = { approvers: ['user:lin'] };
    await asking(
      { key: 'late', expiresInMs: 3_600_000, ...mine },
      { key: 'never', ...mine },
      { key: 'soon', expiresInMs: 60_000, ...mine },
      { key: 'others', approvers: ['user:max'] },
    );
    const variables = { filter: { states: ['OPEN'], viewerCanDecide: true, decidedBy: null }, orderBy: 'EXPIRES_ASC' };
    const page = async (more: object) =>
      (await service.post(LIST, { ...variables, ...more }, { 'x-waymark-actor': 'user:lin' })).data.approvals;
    // Those of other tests ask anybody.
    const keys: string[] = [];
    for (let after: string | null = null, more = true; more; ) {
      const { nodes, pageInfo } = await page({ first: 2, after });
      keys.push(...nodes.map((n: { key: string }) => n.key));
      [after, more] = [pageInfo.endCursor, pageInfo.hasNextPage];
    }
    const own = keys.filter((key) => ['late', 'never', 'soon', 'others'].includes(key));
    expect(own).toEqual(['soon', 'late', 'never']);
    expect((await page({})).totalCount).toBe(keys.length);
  });

  test('a list is told when an approval opens, is voted on and closes, also by a cancel', async () => {
    const client = await new SocketClient(service.url).start();
    const next = async () => (await client.next((m) => m.type === 'next')).payload.data.approvalsChanged;
    const ids = async (id: string, key: string) =>
      eventually(async () => {
        const message = await next();
        const found = message.approvals.find((a: { id: string }) => a.id === id);
        if (!found) throw new Error('another');
        expect(found.key).toBe(key);
        return { ...found, openCount: message.openCount };
      });
    client.subscribe('1', WATCH, {});
    const first = await next();
    expect(first).toMatchObject({ reset: true, approvals: [] });
    const { id, approvals } = await asking({ key: 'watched', requiredApprovals: 2 });
    const opened = await ids(approvals[0] as string, 'watched');
    expect(opened).toMatchObject({ state: 'OPEN', openCount: first.openCount + 1 });
    await decide('approveJob', { jobId: id });
    expect(await ids(approvals[0] as string, 'watched')).toMatchObject({ state: 'OPEN', version: 2 });
    await service.post('mutation ($id: ID!) { cancelJob(input: { id: $id }) { __typename } }', { id });
    const closed = await eventually(async () => {
      const found = await ids(approvals[0] as string, 'watched');
      expect(found.state).toBe('WITHDRAWN');
      return found;
    });
    expect(closed.openCount).toBe(first.openCount);
  });
});
