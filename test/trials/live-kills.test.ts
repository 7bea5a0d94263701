import { afterAll, expect, test } from 'vitest';
import { Link } from '../chaos/cluster/link.ts';
import { cleanUp } from '../cli/program.ts';
import { hasRedisServer, startRedis } from '../events/redis-server.ts';
import { describePostgres } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { type Trial, trial } from './bench.ts';
import { type Record, subscribe } from './live/subscribers.ts';
import { type Api, makeTrouble } from './live/troubles.ts';

/** In CI short; the promise is for three minutes. */
const SECONDS = Number(process.env.WAYMARK_TRIAL_LIVE_SECONDS ?? 10);
const JOBS = 200;
const SUBSCRIBERS = 500;
const LINKS = 4;
const SETTLE_MS = 60_000;

afterAll(cleanUp);

interface LogRow {
  id: string;
  seq: number;
  type: string;
  state: string;
}

async function truthOf(t: Trial) {
  const logs = new Map<string, Omit<LogRow, 'id'>[]>();
  const rows = await t.sql<LogRow[]>`select job_id as id, seq, type, state from waymark.events order by job_id, seq`;
  for (const { id, ...event } of rows) logs.set(id, [...(logs.get(id) ?? []), event]);
  const jobs = new Map<string, { version: number; state: string }>();
  for (const { id, ...job } of await t.sql<{ id: string; version: number; state: string }[]>`
    select id, version, state from waymark.job_states`)
    jobs.set(id, job);
  return { logs, jobs };
}

describePostgres('the live view', () => {
  test.skipIf(!hasRedisServer)(
    `what ${SUBSCRIBERS} subscribers were told is what the log says, while sockets, APIs and Redis die at random`,
    async (ctx) => {
      const random = seededRandom();
      const redis = await startRedis();
      ctx.onTestFinished(() => redis.stop());
      const t = await trial(ctx, { REDIS_URL: redis.url, WAYMARK_CONCURRENCY: String(JOBS / 2) });
      await Promise.all([t.worker(), t.worker()]);
      const apis = await Promise.all([1, 2].map(() => openApi(t)));
      ctx.onTestFinished(
        async () => void (await Promise.all(apis.flatMap(({ links }) => links.map((l) => l.close())))),
      );
      const urls = apis.flatMap(({ links }) => links.map(({ port }) => `http://127.0.0.1:${port}/graphql`));

      const { file: ledger } = await t.ledger();
      const jobIds: string[] = [];
      for (let i = 0; i < JOBS; i++) {
        const ms = Math.round(500 + random() * 2_500);
        const n = Math.ceil(((0.2 + random()) * SECONDS * 1_000) / ms);
        jobIds.push((await t.client.submit('steps', { n, ms, ledger }, { tags: ['watched'] })).id);
      }
      const subscribers = subscribe(urls, jobIds, SUBSCRIBERS);
      ctx.onTestFinished(() => subscribers.close());
      console.log(await makeTrouble({ apis, redis }, SECONDS * 1_000, random));

      for (const id of jobIds) expect(await t.ends(id, SETTLE_MS)).toBe('COMPLETED');
      const ending = subscribers.records.filter(({ kind }) => kind !== 'list').map(({ ended }) => ended);
      await within(SETTLE_MS, Promise.all(ending), 'the end of all streams');
      const { logs, jobs } = await truthOf(t);
      for (const record of subscribers.records) if (record.kind !== 'list') expectTrue(record, t, logs, jobs);
      const lists = subscribers.records.filter((record) => record.kind === 'list');
      const expected = new Map(jobIds.map((id) => [id, jobs.get(t.uuid(id))]));
      for (const list of lists) await eventually(() => expect(list.jobs).toEqual(expected), { timeoutMs: SETTLE_MS });
      console.log({ connections: subscribers.connections, resets: lists.map(({ resets }) => resets) });
      await subscribers.close();
      await Promise.all(lists.map(({ ended }) => ended));
    },
    SECONDS * 2_000 + 3 * SETTLE_MS,
  );
});

async function openApi(t: Trial): Promise<Api> {
  const service = await t.api();
  const { port } = new URL(service.url);
  const links = await Promise.all(Array.from({ length: LINKS }, (_, i) => Link.open(`way ${i}`, Number(port))));
  return { service, again: () => t.api({ PORT: port }), links };
}

function expectTrue(
  record: Exclude<Record, { kind: 'list' }>,
  t: Trial,
  logs: ReadonlyMap<string, Omit<LogRow, 'id'>[]>,
  jobs: ReadonlyMap<string, { version: number; state: string }>,
): void {
  const id = t.uuid(record.jobId);
  if (record.kind === 'events') {
    expect(record.events).toEqual(logs.get(id));
    return;
  }
  const versions = record.values.map(({ version }) => version);
  expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
  expect(record.values.at(-1)).toEqual(jobs.get(id));
}
