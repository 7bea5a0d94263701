import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newUuid } from '../../src/core/ids.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { ClaimedJob, SubmitRequest } from '../../src/engine/types.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { engineOptions, me, taskNamed } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';

const HOUR_MS = 3_600_000;
const HIGH = 10;

const LINES = databases().flatMap((store) => [
  { ...store, kind: 'without a limit' },
  { ...store, kind: 'with a limit' },
]);

describe.each(LINES)('the order of claims from queues $kind on $name (B59)', ({ open, kind }) => {
  const random = seededRandom();
  let database: TestDatabase;
  let worker: string;
  /** Of this test alone: what others left waiting is not claimed. */
  let tasks: string[];
  let engine: Engine;

  beforeAll(async () => {
    database = await open();
  });
  beforeEach(async () => {
    tasks = ['a', 'b'].map((name) => `${name}-${newUuid()}`);
    engine = await engineWith(HOUR_MS);
    // One that leaves everything free: nobody may go first because of it.
    const maxRunning = kind === 'with a limit' ? 100_000 : null;
    for (const name of ['default', 'other']) await engine.queues.update(me, name, { maxRunning });
  });

  async function engineWith(priorityStepMs: number): Promise<Engine> {
    const made = createEngine({ database, channel: createMemoryChannel(), options: engineOptions({ priorityStepMs }) });
    worker = newUuid();
    const about = { host: 'test', pid: 1, queues: ['default', 'other'], slots: 10, leaseMs: HOUR_MS };
    await made.execution.registerWorker({ ...about, id: worker, tasks: tasks.map((name) => taskNamed(name)) });
    return made;
  }
  const claim = async (limit: number): Promise<readonly ClaimedJob[]> => {
    const request = { queues: null, tasks, limit };
    if (kind !== 'with a limit') return engine.execution.claim(worker, request);
    return (await engine.execution.claimLimited(worker, request)).jobs;
  };
  const submit = async (over: Partial<SubmitRequest> = {}) =>
    (await engine.jobs.submit(me, { task: tasks[0] as string, ...over })).jobId;
  const ids = (jobs: readonly ClaimedJob[]) => jobs.map((job) => job.id).sort();

  test('a job of high priority is the next, however many of low priority wait', async () => {
    const low = await engine.jobs.submitMany(
      me,
      Array.from({ length: 500 }, (_, i) => ({
        task: tasks[i % 2] as string,
        queue: i % 3 ? 'default' : 'other',
        priority: -Math.floor(random() * 5),
      })),
    );
    const high = await submit({ priority: 1 });
    expect(ids(await claim(1))).toEqual([high]);
    // Also among several, from another line, or with a task of its own.
    const others = [
      await submit({ priority: 1, queue: 'other' }),
      await submit({ priority: 1, task: tasks[1] as string }),
    ];
    expect(ids(await claim(10))).toEqual(expect.arrayContaining(others));
    expect(low.map((job) => job.jobId)).toEqual(expect.not.arrayContaining(others));
  });

  test('of equal priority the first in is the first out, whatever way it came and whatever line it waits in', async () => {
    const order: string[] = [];
    for (let i = 0; i < 12; i++) {
      order.push(await submit({ queue: i % 2 ? 'other' : 'default', task: tasks[i % 3 ? 0 : 1] as string }));
      const requests = Array.from({ length: 4 }, () => ({ task: tasks[0] as string }));
      order.push(...(await engine.jobs.submitMany(me, requests)).map((job) => job.jobId));
    }
    for (let at = 0; at < order.length; ) {
      const limit = 1 + Math.floor(random() * 7);
      expect(ids(await claim(limit))).toEqual(order.slice(at, at + limit).sort());
      at += limit;
    }
  });

  test('a job that is handed back has kept its place', async () => {
    const [first, second] = [await submit(), await submit()];
    const [claimed] = await claim(1);
    expect(claimed?.id).toBe(first);
    await engine.execution.settle({ jobId: first, attempt: 1, outcome: 'RELEASED' });
    expect(ids(await claim(1))).toEqual([first]);
    expect(ids(await claim(1))).toEqual([second]);
  });

  test('a job of low priority is overtaken only by what came within the time that its priority is short of', async () => {
    const stepMs = 40;
    engine = await engineWith(stepMs);
    const low = await submit({ priority: 0 });
    const overtook: ClaimedJob[] = [];
    // As many come as are claimed: the workers never get to the end of the line.
    const reached = await eventually(
      async () => {
        await engine.jobs.submitMany(
          me,
          Array.from({ length: 5 }, () => ({ task: tasks[0] as string, priority: HIGH })),
        );
        const claimed = await claim(5);
        const found = claimed.find((job) => job.id === low);
        if (!found) {
          overtook.push(...claimed);
          throw new Error('it still waits');
        }
        return found;
      },
      { timeoutMs: 20_000, intervalMs: 1 },
    );
    expect(overtook.length).toBeGreaterThan(0);
    const boundMs = HIGH * stepMs;
    for (const job of overtook) expect(ageMs(reached, job)).toBeLessThanOrEqual(boundMs);
    // And it was by this rule that it was reached, not since the line ran empty.
    const [rest] = await claim(1);
    expect(rest && ageMs(reached, rest)).toBeGreaterThanOrEqual(boundMs);
  });
});

/** How much later `job` came than `earlier`, in milliseconds and parts of one. */
function ageMs(earlier: ClaimedJob, job: ClaimedJob): number {
  const micros = (at: string) => Date.parse(at) + Number(/\.\d{3}(\d+)/.exec(at)?.[1] ?? 0) / 1_000;
  return micros(job.createdAt) - micros(earlier.createdAt);
}
