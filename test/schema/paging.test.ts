import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { newUuid, publicId } from '../../src/core/ids.ts';
import { isTerminal, JOB_STATES } from '../../src/core/state.ts';
import { JOB_ORDERS, type JobOrder } from '../../src/db/reads/job-list.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { execute, read } from './execute.ts';
import { deleteJobs, type GivenJob, insertJobs } from './rows.ts';

const PAGE = `query ($first: Int, $after: String, $last: Int, $before: String, $orderBy: JobOrder, $filter: JobFilter) {
  jobs(first: $first, after: $after, last: $last, before: $before, orderBy: $orderBy, filter: $filter) {
    edges { cursor node { id } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    totalCount
  }
}`;

/** Few moments, a microsecond apart, so that most rows tie with others. */
const moment = fc.constantFrom(
  '2026-01-01 00:00:00+00',
  '2026-01-01 00:00:00.000001+00',
  '2026-01-01 00:00:00.000002+00',
  '2026-01-01 00:00:00.001+00',
);
const job = fc.record({
  state: fc.constantFrom(...JOB_STATES),
  createdAt: moment,
  changedAt: moment,
  runAt: moment,
  blocked: fc.boolean(),
});

/** The list that pages must add up to, by the definition of the order. */
function inOrder(jobs: (GivenJob & { id: string })[], order: JobOrder): string[] {
  const key = (j: GivenJob): string => {
    if (order.startsWith('CREATED')) return j.createdAt ?? '';
    if (order === 'UPDATED_DESC') return j.changedAt ?? '';
    if (order === 'RUN_AT_ASC') return j.runAt ?? '';
    return `${isTerminal(j.state ?? 'QUEUED') ? 1 : 0} ${j.changedAt}`;
  };
  const sorted = jobs.toSorted((a, b) => (key(a) === key(b) ? compare(a.id, b.id) : compare(key(a), key(b))));
  return (order.endsWith('_ASC') ? sorted : sorted.reverse()).map((j) => j.id);
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

describe.each(databases())('pages of jobs on $name', ({ open }) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await open();
  });

  test('neither lose nor repeat a job, whatever ties, forwards and backwards', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(job, { maxLength: 14 }),
        fc.constantFrom(...JOB_ORDERS),
        fc.option(fc.uniqueArray(fc.constantFrom(...JOB_STATES), { maxLength: 5 }), { nil: null }),
        fc.integer({ min: 1, max: 5 }),
        fc.boolean(),
        async (given, orderBy, states, size, backwards) => {
          await deleteJobs(database.work);
          const jobs = given.map((j) => ({ ...j, id: newUuid() }));
          await insertJobs(database.work, jobs);
          const matching = jobs.filter((j) => states === null || states.includes(j.state));
          const wanted = inOrder(matching, orderBy).map((id) => publicId('Job', id));

          const seen: string[] = [];
          let cursor: string | null = null;
          for (let page = 0; page <= wanted.length; page++) {
            const window = backwards ? { last: size, before: cursor } : { first: size, after: cursor };
            const { jobs: found } = await read(database.read, PAGE, { ...window, orderBy, filter: { states } });
            const ids = found.edges.map((e: { node: { id: string } }) => e.node.id);
            if (backwards) seen.unshift(...ids);
            else seen.push(...ids);
            const rest = wanted.length - seen.length > 0;
            expect(found.totalCount).toBe(wanted.length);
            expect(found.pageInfo.hasNextPage).toBe(backwards ? seen.length > ids.length : rest);
            expect(found.pageInfo.hasPreviousPage).toBe(backwards ? rest : seen.length > ids.length);
            cursor = backwards ? found.pageInfo.startCursor : found.pageInfo.endCursor;
            if (!rest) break;
          }
          expect(seen).toEqual(wanted);
        },
      ),
      { numRuns: 40 },
    );
  });

  test('a window between two cursors is cut at both', async () => {
    await deleteJobs(database.work);
    await insertJobs(
      database.work,
      Array.from({ length: 6 }, () => ({})),
    );
    const all = (await read(database.read, PAGE)).jobs.edges as { cursor: string; node: { id: string } }[];
    const { jobs } = await read(database.read, PAGE, { first: 10, after: all[1]?.cursor, before: all[4]?.cursor });
    expect(jobs.edges).toEqual(all.slice(2, 4));
    expect(jobs.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: true });
  });

  test('a page behind the end is empty and knows that something lies before it', async () => {
    await deleteJobs(database.work);
    await insertJobs(database.work, [{}]);
    const { jobs: all } = await read(database.read, PAGE);
    const { jobs } = await read(database.read, PAGE, { first: 3, after: all.pageInfo.endCursor });
    expect(jobs).toMatchObject({ edges: [], pageInfo: { hasNextPage: false, hasPreviousPage: true, endCursor: null } });
  });

  test('a job that moves to the front while somebody pages is not shown twice, and no other is lost', async () => {
    await deleteJobs(database.work);
    const ids = await insertJobs(
      database.work,
      Array.from({ length: 6 }, (_, i) => ({ changedAt: `2026-01-01 00:00:0${i}+00` })),
    );
    const first = (await read(database.read, PAGE, { first: 3, orderBy: 'UPDATED_DESC' })).jobs;
    await database.work.query(`update waymark.job_states set changed_at = now() where id = $1::uuid`, [ids[0] ?? '']);
    const second = (
      await read(database.read, PAGE, { first: 3, after: first.pageInfo.endCursor, orderBy: 'UPDATED_DESC' })
    ).jobs;
    const seen = [...first.edges, ...second.edges].map((e: { node: { id: string } }) => e.node.id);
    expect(seen).toEqual(
      ids
        .slice(1)
        .reverse()
        .map((id) => publicId('Job', id)),
    );
  });

  test.each([
    ['first', { first: -1 }, 'first: must be from 0 to 200, not -1'],
    ['first', { first: 1_000_000 }, 'first: must be from 0 to 200, not 1000000'],
    ['last', { last: 201 }, 'last: must be from 0 to 200, not 201'],
    ['last', { first: 1, last: 1 }, 'last: must not be given together with first'],
    ['after', { after: 'junk!' }, 'after: is not a cursor of this list'],
    [
      'after',
      { after: Buffer.from('["CREATED_DESC",0,"2026-99-99 00:00:00+00","x"]').toString('base64url') },
      'after: is not a cursor',
    ],
    ['before', { before: Buffer.from('{"a":1}').toString('base64url') }, 'before: is not a cursor'],
    ['after', { after: 'A'.repeat(100_000) }, 'after: is not a cursor'],
  ])('a wrong %s is BAD_USER_INPUT that names it and the rule', async (argument, variables, message) => {
    const { errors, data } = await execute(database.read, PAGE, variables);
    expect(data).toBeNull();
    expect(errors).toHaveLength(1);
    expect(errors?.[0]?.message).toContain(message);
    expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', argument });
  });

  test('a cursor of one order is no cursor of another', async () => {
    await insertJobs(database.work, [{}]);
    const { jobs } = await read(database.read, PAGE, { orderBy: 'CREATED_ASC' });
    const { errors } = await execute(database.read, PAGE, { after: jobs.pageInfo.endCursor, orderBy: 'RUN_AT_ASC' });
    expect(errors?.[0]?.extensions.argument).toBe('after');
  });

  test('a page of 0 says whether there is anything', async () => {
    await deleteJobs(database.work);
    expect((await read(database.read, PAGE, { first: 0 })).jobs.pageInfo.hasNextPage).toBe(false);
    await insertJobs(database.work, [{}]);
    expect((await read(database.read, PAGE, { first: 0 })).jobs).toMatchObject({
      edges: [],
      pageInfo: { hasNextPage: true },
    });
  });
});
