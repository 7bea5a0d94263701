import { beforeAll, describe, expect, test } from 'vitest';
import { newUuid, publicId } from '../../src/core/ids.ts';
import { jobsByIds } from '../../src/db/reads/job-row.ts';
import { toGraphQLError } from '../../src/schema/errors.ts';
import { toFilter } from '../../src/schema/job-filter.ts';
import { liveFilter } from '../../src/schema/live-filter.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { insertWorker } from '../support/factory.ts';
import { execute, read } from './execute.ts';
import { type GivenJob, insertJobs } from './rows.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const [LIVE, LOST] = [newUuid(), newUuid()];
const at = (second: number) => `2026-01-01 00:00:${String(second).padStart(2, '0')}+00`;
const iso = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;

/** Jobs by the names that the cases below use. */
const JOBS = {
  plain: { id: ID, task: 'echo', createdAt: at(1) },
  titled: { title: 'Nightly Report 50%_\\', tags: ['red', 'big'], createdAt: at(2), queue: 'slow' },
  tagged: { tags: ['red'], createdAt: at(3), submittedBy: 'user:ada', key: 'Order-7' },
  running: { state: 'RUNNING', workerId: LIVE, createdAt: at(4), lastAdvanceAt: '2100-01-01 00:00:00+00' },
  stalled: { state: 'RUNNING', workerId: LOST, createdAt: at(5) },
  stuck: { state: 'RUNNING', workerId: LIVE, createdAt: at(6), stallTimeoutMs: 1_000 },
  retrying: { state: 'RETRYING', errorCode: 'E1', createdAt: at(7) },
  failed: { state: 'FAILED', errorCode: 'E2', createdAt: at(8), changedAt: at(18) },
  completed: { state: 'COMPLETED', createdAt: at(9), changedAt: at(19) },
  canceled: { state: 'CANCELED', createdAt: at(10), changedAt: at(20) },
  scheduled: { state: 'SCHEDULED', createdAt: at(11) },
  paused: { queue: 'paused', createdAt: at(12) },
  unserved: { task: 'nobody.runs.it', createdAt: at(13) },
  keyed: { state: 'QUEUED', blocked: true, createdAt: at(14) },
  pruned: { state: 'COMPLETED', pruned: true, key: 'old', createdAt: at(15), changedAt: at(25) },
} satisfies Record<string, GivenJob>;
type Name = keyof typeof JOBS;
const NAMES = Object.keys(JOBS) as Name[];
const KEPT = NAMES.filter((name) => name !== 'pruned');
const but = (...left: Name[]) => KEPT.filter((name) => !left.includes(name));

const LIST =
  'query ($filter: JobFilter) { jobs(first: 200, orderBy: CREATED_ASC, filter: $filter) { nodes { id } totalCount } jobCounts(filter: $filter) { count } }';

describe.each(databases())('filters of jobs on $name', ({ open }) => {
  let database: TestDatabase;
  const ids = new Map<string, Name>();

  beforeAll(async () => {
    database = await open();
    const inserted = await insertJobs(database.work, Object.values(JOBS));
    for (const [i, id] of inserted.entries()) ids.set(publicId('Job', id), NAMES[i] as Name);
    await insertJobs(database.work, [{ tenant: 'other', tags: ['red'] }]);
    for (const [id, leaseMs] of [
      [LIVE, 3_600_000],
      [LOST, -1_000],
    ] as const) {
      const inserted = await insertWorker(database.work, { leaseMs, tasks: ['echo'] });
      await database.work.query('update waymark.workers set id = $1::uuid where id = $2::uuid', [id, inserted]);
    }
    await database.work.query(
      `insert into waymark.queues (name, id, paused, created_at) select x.name, gen_random_uuid(), x.name = 'paused', now()
       from (values ('default'), ('slow'), ('paused')) x(name)`,
    );
  });

  const publicIdOf = (name: Name) => [...ids].find(([, n]) => n === name)?.[0] ?? '';

  const cases: [string, () => Record<string, unknown> | null, Name[]][] = [
    ['nothing given matches all', () => null, KEPT],
    ['an empty filter matches all', () => ({}), KEPT],
    ['null is as if not given', () => ({ states: null, tags: null, text: null, createdAfter: null }), KEPT],
    ['values of a list are alternatives', () => ({ states: ['FAILED', 'CANCELED'] }), ['failed', 'canceled']],
    ['a value given twice counts once', () => ({ states: ['FAILED', 'FAILED'] }), ['failed']],
    ['fields narrow each other', () => ({ states: ['QUEUED'], tasks: ['nobody.runs.it'] }), ['unserved']],
    ['tasks', () => ({ tasks: ['nobody.runs.it', 'unknown'] }), ['unserved']],
    ['queues', () => ({ queues: ['slow', 'paused'] }), ['titled', 'paused']],
    ['tags mean all of them', () => ({ tags: ['red', 'big'] }), ['titled']],
    ['one tag', () => ({ tags: ['red'] }), ['titled', 'tagged']],
    ['an empty list of states matches nothing', () => ({ states: [] }), []],
    ['an empty list of tags matches nothing', () => ({ tags: [] }), []],
    ['an empty list of ids matches nothing', () => ({ ids: [] }), []],
    ['an empty list of queues matches nothing', () => ({ queues: [] }), []],
    ['an empty list of tasks matches nothing', () => ({ tasks: [] }), []],
    ['an empty list of health matches nothing', () => ({ health: [] }), []],
    ['an empty list of waiting kinds matches nothing', () => ({ waitingKinds: [] }), []],
    ['an empty list of error codes matches nothing', () => ({ errorCodes: [] }), []],
    ['ids', () => ({ ids: [publicIdOf('failed'), publicIdOf('plain')] }), ['plain', 'failed']],
    ['createdAfter includes its moment', () => ({ createdAfter: iso(13) }), ['unserved', 'keyed']],
    ['createdBefore excludes its moment', () => ({ createdBefore: iso(3) }), ['plain', 'titled']],
    [
      'finishedAfter and finishedBefore',
      () => ({ finishedAfter: iso(18), finishedBefore: iso(20) }),
      ['failed', 'completed'],
    ],
    ['text: a prefix of the title, whatever the case', () => ({ text: 'NIGHTLY rep' }), ['titled']],
    ['text: wildcards are letters like others', () => ({ text: 'nightly report 50%_\\' }), ['titled']],
    ['text: a wildcard alone matches nothing', () => ({ text: '%' }), []],
    ['text: not the middle of a title', () => ({ text: 'report' }), []],
    ['text: the task’s name where there is no title', () => ({ text: 'nobody' }), ['unserved']],
    ['text: a prefix of the key', () => ({ text: 'order-' }), ['tagged']],
    ['text: the whole id', () => ({ text: publicIdOf('plain').toUpperCase() }), ['plain']],
    ['text: the beginning of the id', () => ({ text: publicIdOf('plain').slice(0, 12) }), ['plain']],
    ['text: what every id begins with', () => ({ text: 'JO' }), KEPT],
    ['text: no id begins like this', () => ({ text: 'job_8' }), []],
    ['submittedBy', () => ({ submittedBy: 'user:ada' }), ['tagged']],
    ['idempotencyKey is matched exactly', () => ({ idempotencyKey: 'Order-7' }), ['tagged']],
    ['idempotencyKey finds what is past retention', () => ({ idempotencyKey: 'old' }), ['pruned']],
    ['ids find what is past retention', () => ({ ids: [publicIdOf('pruned')] }), ['pruned']],
    ['errorCodes', () => ({ errorCodes: ['E1', 'E2', 'E3'] }), ['retrying', 'failed']],
    ['workerId', () => ({ workerId: publicId('Worker', LIVE) }), ['running', 'stuck']],
    ['health: the lease is over', () => ({ health: ['STALLED'] }), ['stalled']],
    ['health: no advance for too long', () => ({ health: ['NOT_ADVANCING'] }), ['stuck']],
    ['health: what does not run is OK', () => ({ health: ['OK'] }), but('stalled', 'stuck')],
    ['waiting: for its time', () => ({ waitingKinds: ['DUE_TIME', 'RETRY_DELAY'] }), ['retrying', 'scheduled']],
    ['waiting: for a queue to go on', () => ({ waitingKinds: ['QUEUE_PAUSED'] }), ['paused']],
    ['waiting: for a worker', () => ({ waitingKinds: ['NO_WORKER'] }), ['unserved']],
    ['waiting: for a slot', () => ({ waitingKinds: ['CAPACITY'] }), ['plain', 'titled', 'tagged']],
    ['waiting: for its key', () => ({ waitingKinds: ['CONCURRENCY_KEY'] }), ['keyed']],
    ['waiting: for what does not exist yet', () => ({ waitingKinds: ['RATE_LIMIT'] }), []],
    ['graphId', () => ({ graphId: publicId('Graph', newUuid()) }), []],
    ['parentId', () => ({ parentId: publicId('Job', newUuid()) }), []],
    ['scheduleId', () => ({ scheduleId: publicId('Schedule', newUuid()) }), []],
  ];

  test.each(cases)('%s', async (_, filter, wanted) => {
    const { jobs, jobCounts } = await read(database.read, LIST, { filter: filter() });
    expect(jobs.nodes.map((n: { id: string }) => ids.get(n.id))).toEqual(wanted);
    expect(jobs.totalCount).toBe(wanted.length);
    expect(jobCounts.reduce((sum: number, c: { count: number }) => sum + c.count, 0)).toBe(wanted.length);
  });

  test.each(cases)('live, too: a change of a job that matches is delivered (%s)', async (_, filter, wanted) => {
    const rows = await jobsByIds(database.read, 'default', [...ids.keys()].map(storedId));
    const live = liveFilter(toFilter(filter()));
    const delivered = rows.filter((row) => {
      const { id: jobId, tenant, task, queue, run, state, version, lastSeq } = row;
      const change = { jobId, tenant, task, queue, run, from: state, state, version, lastSeq };
      return live.change?.(change) && live.state?.(row.state) && live.row?.(row);
    });
    const names = delivered.map((row) => ids.get(publicId('Job', row.id)));
    expect(names).toEqual(expect.arrayContaining(wanted));
    // What no change of state can bring about is not delivered either.
    const stable = !['health', 'waitingKinds'].some((field) => field in (filter() ?? {}));
    if (stable) expect(names.toSorted()).toEqual(wanted.toSorted());
  });

  const storedId = (id: string) => toFilter({ ids: [id] }).ids?.[0] ?? '';

  test.each([
    ['filter.ids[1]', () => ({ ids: [publicIdOf('plain'), 'nonsense'] }), /must begin with one of job_/],
    ['filter.ids[0]', () => ({ ids: [publicId('Worker', LIVE)] }), /is not the id of a Job/],
    ['filter.workerId', () => ({ workerId: publicIdOf('plain') }), /is not the id of a Worker/],
    ['filter.graphId', () => ({ graphId: 'gra_!' }), /is malformed/],
    ['filter.text', () => ({ text: 'a\u0000b' }), /NUL/],
    ['filter.tags[1]', () => ({ tags: ['a', '\ud800'] }), /lone surrogate/],
    ['filter.tasks', () => ({ tasks: Array.from({ length: 1_001 }, () => 'a') }), /more than 1000/],
  ])('%s that cannot be is BAD_USER_INPUT', async (argument, filter, message) => {
    const { errors } = await execute(database.read, LIST, { filter: filter() });
    const [error] = errors ?? [];
    const shown = toGraphQLError(error?.originalError) ?? error;
    expect(shown?.message).toMatch(message);
    expect(shown?.extensions).toMatchObject({ code: 'BAD_USER_INPUT', argument });
  });

  test('another tenant sees none of it, by whatever way', async () => {
    const everything = `query ($id: ID!, $filter: JobFilter) {
      job(id: $id) { id } node(id: $id) { id } nodes(ids: [$id]) { id }
      jobs { totalCount nodes { id } } jobCounts { count } some: jobCounts(filter: $filter) { count }
      workers { running { id } } queues { name counts { count } oldestQueuedAt }
    }`;
    const id = publicIdOf('running');
    const mine = await read(database.read, everything, { id, filter: { tags: ['red'] } });
    const theirs = await read(database.read, everything, { id, filter: { text: 'nightly' } }, 'stranger');
    expect(mine).toMatchObject({ job: { id }, node: { id }, nodes: [{ id }] });
    expect(theirs).toMatchObject({ job: null, node: null, nodes: [null], jobs: { totalCount: 0, nodes: [] } });
    const numbers = JSON.stringify([theirs.jobCounts, theirs.some, theirs.queues]).match(/"count":[1-9]/);
    expect(numbers).toBeNull();
    expect(theirs.workers.flatMap((w: { running: unknown[] }) => w.running)).toEqual([]);
    expect(theirs.queues.every((q: { oldestQueuedAt: unknown }) => q.oldestQueuedAt === null)).toBe(true);
  });
});
