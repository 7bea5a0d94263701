import { afterAll, beforeAll, expect, test } from 'vitest';
import { RUN_NIGHTLY_NOW, SAVE_NIGHTLY, saveNightly } from '../../examples/nightly.ts';
import { drawImage, publishArticle } from '../../examples/tasks/publish-article.ts';
import tasks, { setup } from '../../examples/tasks.ts';
import { createClient, type WaymarkClient } from '../../src/client/index.ts';
import { createWaymark, type Waymark } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';

let waymark: Waymark;
let client: WaymarkClient<typeof tasks>;

beforeAll(async () => {
  waymark = await createWaymark({ dataDir: 'memory://', databaseUrl: null, redisUrl: null, poll: '100ms', setup });
  const server = await waymark.serve({ port: 0, tasks });
  await waymark.worker({ tasks }).start();
  client = createClient<typeof tasks>({ url: `${server.url}/graphql` });
});
afterAll(() => waymark.close());

const reaches = (id: string, state: string) =>
  eventually(async () => expect((await waymark.job(id))?.state).toBe(state), { timeoutMs: 30_000 });

/** What a job did and made: its events, and the names of its artifacts. */
async function historyOf(id: string) {
  type Answer = {
    job: {
      events: { nodes: { type: string; key?: string; waitingKind?: string }[] };
      artifacts: { name: string; sha256: string }[];
      children: { nodes: { id: string; task: string; artifacts: { sha256: string }[] }[] };
    };
  };
  const { job } = await client.request<Answer>(
    `query ($id: ID!) {
      job(id: $id) {
        events(first: 100) {
          nodes { type: __typename ... on CheckpointSaved { key } ... on JobSuspended { waitingKind } }
        }
        artifacts { name sha256 }
        children { nodes { id task artifacts { sha256 } } }
      }
    }`,
    { id },
  );
  return job;
}

test('an article is drafted and drawn, waits for its editor and for its time, and is published', async () => {
  const { job } = await waymark.submit(publishArticle, { topic: 'Rain', approvers: ['user:ada'] });
  await reaches(job.id, 'WAITING_FOR_REVIEW');
  await expect(waymark.approve(job.id, { data: { headline: '' }, as: 'user:ada' })).rejects.toThrow(/data\.headline/);
  await expect(waymark.approve(job.id, { data: { headline: 'x' } })).rejects.toThrow(/not among the approvers/);
  const publishAt = new Date(Date.now() + 1_000).toISOString();
  await waymark.approve(job.id, { data: { headline: 'It rains', publishAt }, as: 'user:ada' });
  await reaches(job.id, 'COMPLETED');
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(publishAt));

  const { events, artifacts, children } = await historyOf(job.id);
  const saved = events.nodes.flatMap(({ type, key }) => (type === 'CheckpointSaved' ? [key] : []));
  expect(saved.filter((key) => ['gather', 'draft', 'publish', 'notify'].includes(key ?? ''))).toEqual([
    'gather',
    'draft',
    'publish',
    'notify',
  ]);
  expect(events.nodes.flatMap(({ waitingKind }) => waitingKind ?? [])).toEqual(['CHILDREN', 'REVIEW', 'SLEEP']);
  expect(artifacts.map(({ name }) => name).sort()).toEqual(['article.md', 'draft.md']);
  expect(children.nodes.map(({ task }) => task)).toEqual([drawImage.name, drawImage.name]);
  expect(await client.job(job.id).get()).toMatchObject({
    result: {
      url: expect.stringMatching(/^https:\/\/example\.com\/articles\/\w+/),
      headline: 'It rains',
      approvedBy: 'user:ada',
      images: children.nodes.map(({ artifacts }) => artifacts[0]?.sha256),
    },
  });
});

test('a rejected article is not published; a retry asks again, and does nothing else again', async () => {
  const { job } = await waymark.submit(publishArticle, { topic: 'Snow' });
  await reaches(job.id, 'WAITING_FOR_REVIEW');
  await waymark.reject(job.id, { as: 'user:ada', comment: 'too cold' });
  await reaches(job.id, 'FAILED');
  expect((await waymark.job(job.id))?.error).toMatchObject({ code: 'APPROVAL_REJECTED', retryable: false });
  await waymark.retry(job.id);
  await reaches(job.id, 'WAITING_FOR_REVIEW');
  await waymark.approve(job.id, { as: 'user:ada', data: { headline: 'It snows' } });
  await reaches(job.id, 'COMPLETED');
  const { events, children } = await historyOf(job.id);
  expect(events.nodes.filter(({ key }) => key === 'draft')).toHaveLength(1);
  expect(children.nodes).toHaveLength(2);
});

test('a schedule is the same from Node and by GraphQL, and its report is made', async () => {
  await saveNightly(waymark);
  type Saved = { saveSchedule: { schedule: { id: string; name: string; nextRunAt: string } } };
  const first = await client.request<Saved>(SAVE_NIGHTLY);
  await saveNightly(waymark);
  expect(await client.request<Saved>(SAVE_NIGHTLY)).toEqual(first);
  expect(first.saveSchedule.schedule).toMatchObject({ name: 'nightly-report', id: expect.stringMatching(/^sch_/) });
  const { runSchedule } = await client.request<{ runSchedule: { job: { id: string } } }>(RUN_NIGHTLY_NOW);
  await reaches(runSchedule.job.id, 'COMPLETED');
  const day = new Date().toISOString().slice(0, 10);
  const { result } = (await client.job(runSchedule.job.id).get()) ?? {};
  expect([day, new Date(Date.now() - 60_000).toISOString().slice(0, 10)]).toContain((result as { day: string }).day);
  expect(result).toMatchObject({ rows: 0, file: expect.stringMatching(/^report-.*\.csv$/) });
});
