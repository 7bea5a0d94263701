import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AnyTask } from '../../src/core/task.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { loadTasks } from '../../src/worker/tasks-module.ts';
import { createWorker, type Worker } from '../../src/worker/worker.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { type Bench, bench } from './bench.ts';

const FILE = fileURLToPath(new URL('./fixtures/isolated.ts', import.meta.url));
let tasks: readonly AnyTask[];
beforeAll(async () => {
  tasks = (await loadTasks(FILE)).tasks;
});
const named = (name: string) => tasks.find((task) => task.name === name) as AnyTask;

describe.each(databases())('a handler in a thread of its own, on $name', (store) => {
  // One worker for all of them: its threads are kept, and a new one takes a second.
  let b: Bench;
  let worker: Worker;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const onFinished = (end: () => Promise<void>): void => {
      stop = end;
    };
    b = await bench(store, { onFinished });
    worker = await b.work(tasks, { databaseUrl: b.database.url ?? null });
  });
  afterAll(() => stop());

  test('has the same context: schemas, steps, checkpoints, batches, progress and log lines', async () => {
    const id = await b.submit(named('all'), { text: 'four' });
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', progress: { current: 5, message: 'last' } });
    expect(await b.result(id)).toEqual({ length: 4, main: false, calls: 5 });
    expect(await b.attempts(id)).toMatchObject([
      { outcome: 'FAILED', error: { message: 'first' } },
      { outcome: 'SUCCEEDED' },
    ]);
    const saved = new Map((await b.checkpoints(id)).map(({ key, data }) => [key, data]));
    expect([...saved.keys()].sort()).toEqual(['numbers', 'once', 'value']);
    expect(saved.get('once')).toEqual({ at: '1970-01-01T00:00:00.000Z' });
    await eventually(async () => {
      const lines = await b.database.read.query<{ message: string; attempt: number }>(
        `select message, attempt from waymark.job_logs where job_id = $1::uuid order by id`,
        [id],
      );
      expect(lines).toEqual([
        { message: 'said in a thread', attempt: 1 },
        { message: 'said in a thread', attempt: 2 },
      ]);
    });
  });

  test('may compute without a pause: the loop of its worker stays free', async () => {
    const other = defineTask({ name: 'other', run: () => 'quick' }) as AnyTask;
    await b.work([other]);
    const id = await b.submit(named('compute'), { ms: 1_500 });
    await b.reaches(id, 'RUNNING');
    expect((await b.ends(await b.submit(other))).state).toBe('COMPLETED');
    expect((await b.job(id)).state).toBe('RUNNING');
    expect((await b.ends(id)).state).toBe('COMPLETED');
    const blocks = b.lines.filter(({ message }) => message.includes('event loop was blocked'));
    expect(blocks.filter(({ data }) => Number(data.blockedMs) > 1_000)).toEqual([]);
  });

  test('is ended together with its thread when it does not stop in time, and frees its slot', async () => {
    const id = await b.submit(named('forever'));
    expect((await b.ends(id)).state).toBe('FAILED');
    const [attempt] = await b.attempts(id);
    const message = expect.stringContaining('ended together with its thread');
    expect(attempt).toMatchObject({ outcome: 'TIMED_OUT', error: { code: 'TIMEOUT', message } });
    await eventually(() => expect(worker.busy()).toBe(0));
  });

  test('is told of a cancel', async () => {
    const id = await b.submit(named('listens'));
    await b.reaches(id, 'RUNNING');
    await b.engine.jobs.cancel(me, id, { reason: 'enough' });
    expect((await b.ends(id)).state).toBe('CANCELED');
    expect((await b.events(id)).map((event) => event.type)).toContain('CancelDelivered');
    await eventually(() => expect(worker.busy()).toBe(0));
  });

  test.each([
    ['exit', 'THREAD_EXITED'],
    ['throw', 'Error'],
  ])('that ends its thread (%s) fails its attempt and nothing else', async (how, code) => {
    const id = await b.submit(named('dies'), how);
    expect((await b.ends(id)).state).toBe('FAILED');
    expect(await b.attempts(id)).toMatchObject([
      { outcome: 'FAILED', error: { code } },
      { outcome: 'FAILED', error: { code } },
    ]);
    expect((await b.ends(await b.submit(named('compute'), { ms: 1 }))).state).toBe('COMPLETED');
  });

  test('throws errors that mean what they mean inline', async () => {
    const id = await b.submit(named('refuses'));
    expect(await b.ends(id)).toMatchObject({ state: 'FAILED', error: { code: 'NO_WAY', retryable: false } });
    expect(await b.attempts(id)).toHaveLength(1);
  });

  test(`has transactions of its own connection on Postgres; on the embedded database they are refused`, async () => {
    const id = await b.submit(named('writes'));
    const { state, error } = await b.ends(id);
    if (store.name === 'Postgres') {
      expect(state).toBe('COMPLETED');
      expect(await b.result(id)).toEqual({ total: 7, rows: [{ n: 1 }] });
    } else {
      expect({ state, code: error?.code }).toEqual({ state: 'FAILED', code: 'NOT_IN_THREAD' });
    }
  });

  test('is handed back when its worker stops', async () => {
    const id = await b.submit(named('forever'), undefined, { timeoutMs: 60_000 });
    await b.reaches(id, 'RUNNING');
    await worker.stop({ graceMs: 50 });
    expect((await b.job(id)).state).toBe('QUEUED');
    expect(await b.attempts(id)).toMatchObject([{ outcome: 'RELEASED' }]);
  });
});

test('a task whose module is not known cannot be isolated; one that names its module can', () => {
  const parts = { concurrency: 1, options: {} } as never as Parameters<typeof createWorker>[0];
  const unknown = defineTask({ name: 'unknown', isolation: 'thread', run: () => 1 }) as AnyTask;
  expect(() => createWorker({ ...parts, tasks: [unknown] })).toThrow(
    /task unknown: isolation "thread" needs the module/,
  );
  const known = defineTask({ name: 'known', isolation: 'thread', module: import.meta.url, run: () => 1 });
  expect(known.module).toBe(fileURLToPath(import.meta.url));
  expect(() => defineTask({ name: 'odd', module: './tasks.ts', run: () => 1 })).toThrow(/module must be a file URL/);
});
