import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newUuid } from '../../src/core/ids.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { ClaimedJob, SubmitRequest } from '../../src/engine/types.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { deferred, within } from '../support/eventually.ts';
import { engineOptions, insertWorker, me, taskNamed } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';
import { mostAtOnce, narrowestMs, startsIn } from '../support/starts.ts';

const ENGINES = 4;

describe.each(databases())('limits of queues on $name', ({ open, name: store }) => {
  const random = seededRandom();
  const upTo = (n: number) => 1 + Math.floor(random() * n);
  let database: TestDatabase;
  /** As many processes: each has engine, channel and knowledge of its own. */
  let engines: Engine[];
  let engine: Engine;
  let workers: string[];
  /** Of this test alone. */
  let queue: string;
  let task: string;

  beforeAll(async () => {
    database = await open();
    restart();
    workers = await Promise.all(engines.map(() => insertWorker(database.work)));
  });
  beforeEach(async () => {
    queue = `queue-${newUuid()}`;
    task = `task-${newUuid()}`;
    await engine.execution.registerTasks([taskNamed(task)]);
  });

  /** Processes that have just started know of every limit. */
  function restart(): void {
    engines = Array.from({ length: ENGINES }, () =>
      createEngine({ database, channel: createMemoryChannel(), options: engineOptions() }),
    );
    engine = engines[0] as Engine;
  }

  const submit = async (n: number, over: Partial<SubmitRequest> = {}) =>
    (
      await engine.jobs.submitMany(
        me,
        Array.from({ length: n }, () => ({ task, queue, ...over })),
      )
    ).map((s) => s.jobId);
  const request = (limit: number) => ({ queues: [queue], tasks: [task], limit });
  const claim = (limit: number, by = 0) =>
    (engines[by] as Engine).execution.claimLimited(workers[by] as string, request(limit));
  const settle = (job: { id: string; attempt: number }) =>
    engine.execution.settle({ jobId: job.id, attempt: job.attempt, outcome: 'SUCCEEDED', result: null });
  const ids = (jobs: readonly { id: string }[]) => jobs.map((job) => job.id).sort();

  /** A process of its own that claims and ends jobs until `left` says that all have ended. */
  async function carry(by: number, left: { jobs: number }): Promise<void> {
    const running: ClaimedJob[] = [];
    while (left.jobs > 0) {
      const { jobs, lookAgainMs } = await claim(upTo(5), by);
      running.push(...jobs);
      const [ends] = running.splice(Math.floor(random() * running.length), 1);
      if (ends) {
        await settle(ends);
        left.jobs--;
      } else {
        await sleep(Math.min(lookAgainMs ?? 5, 20) * random());
      }
    }
  }

  test('no more run at once than may, whoever claims at the same time, 100 times', { timeout: 120_000 }, async () => {
    for (let round = 0; round < 100; round++) {
      queue = `queue-${newUuid()}`;
      const maxRunning = upTo(4);
      const jobs = await submit(4 + upTo(10));
      await engine.queues.update(me, queue, { maxRunning });
      restart();
      const left = { jobs: jobs.length };
      await Promise.all(engines.map((_, by) => carry(by, left)));
      const most = mostAtOnce(await startsIn(database.work, queue));
      expect(most, `round ${round}`).toBeLessThanOrEqual(maxRunning);
    }
  });

  test('no more start in any window than may, whoever claims at the same time, 100 times', {
    timeout: 120_000,
  }, async () => {
    for (let round = 0; round < 100; round++) {
      queue = `queue-${newUuid()}`;
      const rateLimit = { max: upTo(4), perMs: 10 * upTo(10) };
      const jobs = await submit(rateLimit.max * 2 + upTo(5));
      await engine.queues.update(me, queue, { rateLimit, ...(random() < 0.3 ? { maxRunning: upTo(5) } : {}) });
      restart();
      const left = { jobs: jobs.length };
      await Promise.all(engines.map((_, by) => carry(by, left)));
      const starts = await startsIn(database.work, queue);
      expect(starts).toHaveLength(jobs.length);
      expect(narrowestMs(starts, rateLimit.max), `round ${round}`).toBeGreaterThanOrEqual(rateLimit.perMs);
    }
  });

  test('a start that is given back counts, and so does each start of one job', async () => {
    await submit(1);
    await engine.queues.update(me, queue, { rateLimit: { max: 2, perMs: 3_600_000 } });
    for (let attempt = 1; attempt <= 2; attempt++) {
      const { jobs } = await claim(5);
      expect(jobs).toMatchObject([{ attempt }]);
      await engine.execution.settle({ jobId: (jobs[0] as ClaimedJob).id, attempt, outcome: 'RELEASED' });
    }
    expect((await claim(5)).jobs).toEqual([]);
  });

  test('it says how long a rate limit holds, and what has left the window is gone from the store', async () => {
    await submit(3);
    await engine.queues.update(me, queue, { rateLimit: { max: 2, perMs: 300 } });
    const first = await claim(5);
    expect(first.jobs).toHaveLength(2);
    expect(first.lookAgainMs).toBeGreaterThan(0);
    expect(first.lookAgainMs).toBeLessThanOrEqual(300);
    expect((await claim(5)).jobs).toEqual([]);
    await sleep(first.lookAgainMs ?? 0);
    const second = await claim(5);
    expect([second.jobs.length, second.lookAgainMs, second.full]).toEqual([1, null, []]);
    const kept = await database.work.query('select 1 from waymark.queue_starts where queue = $1', [queue]);
    expect(kept).toHaveLength(1);
  });

  test('the store keeps few rows of many starts, which count no less for it', async () => {
    const ids = await submit(40);
    await engine.queues.update(me, queue, { rateLimit: { max: 1_030, perMs: 3_600_000 } });
    // As if as many had started some time ago.
    await database.work.query(
      `insert into waymark.queue_starts (queue, at, n) values ($1, clock_timestamp() - interval '1 minute', 1000)`,
      [queue],
    );
    let started = 0;
    for (let jobs = 1; jobs > 0; started += jobs) jobs = (await claim(upTo(3))).jobs.length;
    expect([started, ids.length]).toEqual([30, 40]);
    const rows = await database.work.query<{ n: number }>(
      'select n from waymark.queue_starts where queue = $1 order by at',
      [queue],
    );
    // A thousandth of an hour is 3.6 s, in which one boundary may lie.
    expect(rows.length).toBeLessThanOrEqual(4);
    expect(rows.reduce((sum, row) => sum + row.n, 0)).toBe(1_030);
  });

  test('a rate limit that is lowered waits until the starts that use it up have left', async () => {
    await submit(6);
    await engine.queues.update(me, queue, { rateLimit: { max: 4, perMs: 3_600_000 } });
    expect((await claim(3)).jobs).toHaveLength(3);
    await engine.queues.update(me, queue, { rateLimit: { max: 2, perMs: 3_600_000 } });
    expect(await claim(3)).toMatchObject({ jobs: [], lookAgainMs: expect.any(Number) });
    await engine.queues.update(me, queue, { rateLimit: { max: 5, perMs: 3_600_000 } });
    expect((await claim(3)).jobs).toHaveLength(2);
  });

  test('it says in which queues jobs wait for one that runs to end', async () => {
    await submit(4);
    await engine.queues.update(me, queue, { maxRunning: 2 });
    restart();
    const { jobs, full, lookAgainMs } = await claim(1);
    expect([jobs.length, full, lookAgainMs]).toEqual([1, [], null]);
    expect(await claim(5)).toMatchObject({ jobs: [{}], full: [queue], lookAgainMs: null });
    expect(await claim(5, 1)).toMatchObject({ jobs: [], full: [queue], lookAgainMs: null });
    await settle(jobs[0] as ClaimedJob);
    expect((await claim(5, 1)).jobs).toHaveLength(1);
  });

  test('a limit that is set, raised or lifted counts at once; one that is left out stays', async () => {
    await submit(12);
    const { execution, queues } = engine;
    const unlimited = () => execution.claim(workers[0] as string, request(1));
    expect(await unlimited()).toHaveLength(1);
    await queues.update(me, queue, { maxRunning: 2, rateLimit: { max: 5, perMs: 3_600_000 } });
    expect(await unlimited()).toEqual([]);
    expect((await claim(10)).jobs).toHaveLength(1);
    await queues.update(me, queue, { maxRunning: 4 });
    expect((await claim(10)).jobs).toHaveLength(2);
    expect(await queues.update(me, queue, {})).toMatchObject({ maxRunning: 4, rateLimitMax: 5 });
    expect(await queues.update(me, queue, { maxRunning: null })).toMatchObject({ maxRunning: null, rateLimitMax: 5 });
    expect((await claim(10)).jobs).toHaveLength(2);
    expect((await claim(10)).jobs).toEqual([]);
    await queues.update(me, queue, { rateLimit: null });
    expect(await unlimited()).toHaveLength(1);
    expect((await claim(10)).jobs).toEqual([]);
    expect(await database.work.query('select 1 from waymark.queue_starts where queue = $1', [queue])).toEqual([]);
  });

  test('a paused queue with limits gives nothing; workers of other queues and tasks get nothing of it', async () => {
    await submit(3);
    await engine.queues.update(me, queue, { maxRunning: 2 });
    await engine.queues.pause(me, queue);
    expect(await claim(5)).toEqual({ jobs: [], full: [], lookAgainMs: null });
    await engine.queues.resume(me, queue);
    const worker = workers[0] as string;
    for (const over of [{ queues: ['other'] }, { tasks: ['other'] }, { queues: [] }]) {
      expect((await engine.execution.claimLimited(worker, { ...request(5), ...over })).jobs).toEqual([]);
    }
    expect((await engine.execution.claimLimited(newUuid(), request(5))).jobs).toEqual([]);
    expect((await engine.execution.claimLimited(worker, { ...request(5), queues: null })).jobs).toHaveLength(2);
  });

  test('several queues and tasks share the slots by rank', async () => {
    const other = { queue: `${queue}-2`, task: `${task}-2` };
    await engine.execution.registerTasks([taskNamed(other.task)]);
    const order: string[] = [];
    for (let i = 0; i < 9; i++) order.push(...(await submit(1, i % 2 ? other : i % 3 ? { task: other.task } : {})));
    for (const name of [queue, other.queue]) await engine.queues.update(me, name, { maxRunning: 100 });
    const all = { queues: [queue, other.queue], tasks: [task, other.task] };
    for (let at = 0; at < order.length; ) {
      const limit = upTo(4);
      const { jobs } = await engine.execution.claimLimited(workers[0] as string, { ...all, limit });
      expect(ids(jobs)).toEqual(order.slice(at, at + limit).sort());
      at += limit;
    }
  });

  if (store === 'Postgres')
    test('nobody waits for a process that stands still while it claims', async () => {
      await submit(2);
      await engine.queues.update(me, queue, { maxRunning: 5 });
      const locked = deferred();
      const go = deferred();
      const holder = database.maintenance.transaction(async (tx) => {
        await tx.query('select 1 from waymark.queues where name = $1 for no key update', [queue]);
        locked.resolve();
        await go.promise;
      });
      await locked.promise;
      const waits: number[] = [];
      for (let i = 0; i < 8; i++) {
        const { jobs, lookAgainMs } = await within(2_000, claim(5));
        expect(jobs).toEqual([]);
        waits.push(lookAgainMs ?? 0);
      }
      for (const ms of waits) expect(ms).toBeGreaterThan(0);
      expect(Math.max(...waits)).toBeLessThanOrEqual(160);
      expect(waits.at(-1)).toBeGreaterThan(Math.min(...waits.slice(0, 2)));
      go.resolve();
      await holder;
      expect((await claim(5)).jobs).toHaveLength(2);
    });

  test('where no queue has a limit the store is asked once a second at most', async () => {
    await database.work.query('update waymark.queues set max_running = null, rate_limit_max = null');
    let statements = 0;
    const counting = {
      ...database,
      work: {
        ...database.work,
        query: <Row>(...args: Parameters<typeof database.work.query>) => {
          statements++;
          return database.work.query<Row>(...args);
        },
      },
    };
    const channel = createMemoryChannel();
    const { execution } = createEngine({ database: counting, channel, options: engineOptions() });
    for (let i = 0; i < 20; i++) await execution.claimLimited(workers[0] as string, { ...request(5), queues: null });
    expect(statements).toBe(1);
  });
});
