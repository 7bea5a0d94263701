import { beforeEach, describe, expect, test } from 'vitest';
import type { JobErrorData } from '../../src/core/event.ts';
import { newUuid } from '../../src/core/ids.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { engineOptions, me, taskNamed } from '../support/factory.ts';

/** Ways in which an attempt uses up budget, with what is recorded of it. */
const WAYS = { throw: 'FAILED', timeout: 'TIMED_OUT', kill: 'STALLED', stuck: 'NOT_ADVANCING' } as const;
type Way = keyof typeof WAYS;
const ways = Object.keys(WAYS) as Way[];
const orders = ways.flatMap((a) => ways.flatMap((b) => ways.map((c) => [a, b, c] as const)));

const ATTEMPTS = 3;
const task = taskNamed('echo', { maxAttempts: ATTEMPTS });
const failure = (code: string): JobErrorData => ({
  ...{ code, message: code, retryable: true, stack: null, attempt: 1, at: new Date().toISOString() },
});

describe.each(databases())('three attempts, on $name', ({ open }) => {
  let database: TestDatabase;
  let engine: Engine;

  beforeEach(async () => {
    database = await open();
    engine = createEngine({
      database,
      channel: createMemoryChannel(),
      options: engineOptions({ leaseMs: 30, sweepMs: 50 }),
    });
  });

  async function worker(): Promise<string> {
    const id = newUuid();
    await engine.execution.registerWorker({
      ...{ id, host: 'test', pid: 1, queues: null, tasks: [task], slots: 10, leaseMs: 60_000 },
    });
    return id;
  }

  async function endAttempt(way: Way, jobId: string, attempt: number, workerId: string): Promise<void> {
    if (way === 'throw') {
      await engine.execution.settle({ jobId, attempt, outcome: 'FAILED', error: failure('Error'), delayMs: 0 });
    } else if (way === 'timeout') {
      await engine.execution.settle({ jobId, attempt, outcome: 'TIMED_OUT', error: failure('TIMEOUT'), delayMs: 0 });
    } else {
      await database.work.query(
        way === 'kill'
          ? `update waymark.workers set lease_until = clock_timestamp() - interval '1 s' where id = $1::uuid`
          : `update waymark.jobs set stall_timeout_ms = 0 where id in (select id from waymark.job_states where worker_id = $1::uuid)`,
        [workerId],
      );
      // A sweeper rescues after a whole lease of unbroken contact.
      await eventually(async () => expect((await engine.maintenance.rescue()).rescued).toBe(1), { intervalMs: 10 });
      await database.work.query('update waymark.jobs set stall_timeout_ms = null where id = $1::uuid', [jobId]);
    }
  }

  test(`in all ${orders.length} orders of throw, timeout, kill and standing still: exactly three, each with its own reason, then FAILED (B20)`, async () => {
    for (const order of orders) {
      const { jobId } = await engine.jobs.submit(me, { task: 'echo' }, { definition: task });
      for (const [i, way] of order.entries()) {
        const workerId = await worker();
        const [job] = await eventually(
          async () => {
            await engine.maintenance.stage();
            const claimed = await engine.execution.claim(workerId, { queues: null, tasks: ['echo'], limit: 1 });
            expect(claimed).toHaveLength(1);
            return claimed;
          },
          { timeoutMs: 5_000, intervalMs: 2 },
        );
        expect([job?.id, job?.attempt, job?.failures]).toEqual([jobId, i + 1, i]);
        await endAttempt(way, jobId, i + 1, workerId);
      }
      const attempts = await database.work.query<{ outcome: string }>(
        'select outcome from waymark.attempts where job_id = $1::uuid order by number',
        [jobId],
      );
      expect([order, attempts.map(({ outcome }) => outcome)]).toEqual([order, order.map((way) => WAYS[way])]);
      const [row] = await database.work.query<{ state: string; failures: number }>(
        'select state, failures from waymark.job_states where id = $1::uuid',
        [jobId],
      );
      expect([order, row]).toEqual([order, { state: 'FAILED', failures: ATTEMPTS }]);
      expect(await engine.execution.claim(await worker(), { queues: null, tasks: ['echo'], limit: 1 })).toEqual([]);
    }
  });

  test('a job handed back 21 times in a row counts as stalled: at first it goes back at once, then it waits', async () => {
    const { jobId } = await engine.jobs.submit(me, { task: 'echo' }, { definition: task });
    const workerId = await worker();
    const handBack = async (attempt: number): Promise<unknown> => {
      expect(await engine.execution.claim(workerId, { queues: null, tasks: ['echo'], limit: 1 })).toHaveLength(1);
      await engine.execution.settle({ jobId, attempt, outcome: 'RELEASED' });
      const [row] = await database.work.query(
        `select state, failures, run_at > clock_timestamp() + interval '5 s' as waits from waymark.job_states where id = $1::uuid`,
        [jobId],
      );
      return row;
    };
    for (let i = 1; i <= 20; i++) expect(await handBack(i)).toEqual({ state: 'QUEUED', failures: 0, waits: false });
    expect(await handBack(21)).toEqual({ state: 'QUEUED', failures: 1, waits: false });
    for (let i = 22; i <= 41; i++) expect(await handBack(i)).toMatchObject({ state: 'QUEUED', failures: 1 });
    expect(await handBack(42)).toEqual({ state: 'RETRYING', failures: 2, waits: true });
  });
});
