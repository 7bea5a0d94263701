import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AnyTask } from '../../src/core/task.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { loadTasks } from '../../src/worker/tasks-module.ts';
import { createWorker, type Worker } from '../../src/worker/worker.ts';
import { cleanUp, temporaryDir } from '../cli/program.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { type Bench, bench } from './bench.ts';

const FILE = fileURLToPath(new URL('./fixtures/isolated.ts', import.meta.url));
let tasks: readonly AnyTask[];
beforeAll(async () => {
  tasks = (await loadTasks(FILE)).tasks;
});
afterAll(cleanUp);
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

  const decide = (id: string, verdict: 'APPROVED' | 'REJECTED', key: string | null = null, data?: object) =>
    b.engine.approvals.decide({ ...me, actor: 'user:ada' }, { jobId: id, key }, verdict, { comment: 'so', data });

  test('asks people: several at once, each answer brings it back, with no thread held meanwhile', async () => {
    const id = await b.submit(named('asks'), { at: 'start' });
    const waiting = await b.reaches(id, 'WAITING_FOR_REVIEW');
    expect(waiting).toMatchObject({ attempt: 1, workerId: null, progress: { message: 'asks in attempt 1' } });
    await eventually(() => expect(worker.busy()).toBe(0));
    await expect(decide(id, 'APPROVED', 'first')).rejects.toThrow(/data: is required/);
    await decide(id, 'REJECTED', 'second');
    await eventually(async () => expect(await b.job(id)).toMatchObject({ attempt: 2, state: 'WAITING_FOR_REVIEW' }));
    await decide(id, 'APPROVED', 'first', { n: '7' });
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 3 });
    const began = { at: 'start', attempt: 1 };
    expect(await b.result(id)).toEqual({ began, first: { n: 7 }, by: 'user:ada', second: 'REJECTED', main: false });
    expect((await b.attempts(id)).map(({ outcome }) => outcome)).toEqual(['SUSPENDED', 'SUSPENDED', 'SUCCEEDED']);
    const told = await b.database.read.query(`select 1 from waymark.job_logs where job_id = $1::uuid`, [id]);
    expect(told).toHaveLength(1);
  });

  test('may not wait inside a step', async () => {
    const { state, error } = await b.ends(await b.submit(named('waits-in-step')));
    expect({ state, code: error?.code, retryable: error?.retryable }).toEqual({
      state: 'FAILED',
      code: 'WAIT_INSIDE_STEP',
      retryable: false,
    });
  });

  test('fails when people say no, and asks again when it is retried', async () => {
    const id = await b.submit(named('rejected'));
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    await decide(id, 'REJECTED');
    expect(await b.ends(id)).toMatchObject({
      state: 'FAILED',
      error: { code: 'APPROVAL_REJECTED', retryable: false, message: 'approval "x" was rejected by user:ada: so' },
    });
    await b.engine.jobs.retry(me, id);
    await b.reaches(id, 'WAITING_FOR_REVIEW');
    await b.engine.jobs.cancel(me, id);
    expect((await b.ends(id)).state).toBe('CANCELED');
  });

  test('sleeps; no catch and no finally of it runs then', async () => {
    const file = join(await temporaryDir(), 'notes');
    const id = await b.submit(named('naps'), { file });
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED', attempt: 2 });
    expect(readFileSync(file, 'utf8')).toBe('1 suspended\n2 awake\n2 finally\n');
  });

  test('submits children and others once, and gets how the children ended', async () => {
    const [good, failing, all] = [
      await b.submit(named('parent'), { way: 'none' }),
      await b.submit(named('parent'), { way: 'throw' }),
      await b.submit(named('parent'), { way: 'return' }),
    ];
    expect((await b.ends(good)).state).toBe('COMPLETED');
    const jobId = expect.stringMatching(/^job_/);
    expect(await b.result(good)).toEqual({ jobId, results: ['computed', 'computed'] });
    expect(await b.ends(failing)).toMatchObject({
      state: 'FAILED',
      error: { code: 'CHILD_FAILED', retryable: false, message: expect.stringContaining('child refuses') },
    });
    expect((await b.ends(all)).state).toBe('COMPLETED');
    expect(await b.result(all)).toEqual({
      jobId,
      results: [
        { jobId, task: 'compute', state: 'COMPLETED', result: 'computed' },
        { jobId, task: 'refuses', state: 'FAILED', error: expect.objectContaining({ code: 'NO_WAY' }) },
      ],
    });
    const rows = await b.database.read.query<{ children: number; aside: number }>(
      `select (count(*) filter (where parent_id is not null))::int as children,
              (count(*) filter (where tags = array['aside']))::int as aside from waymark.jobs
       where parent_id in ($1::uuid, $2::uuid, $3::uuid) or tags = array['aside']`,
      [good, failing, all],
    );
    expect(rows).toEqual([{ children: 6, aside: 3 }]);
    expect((await b.ends(await b.submit(named('wrong-parent')))).error).toMatchObject({
      code: 'INVALID_INPUT',
      retryable: false,
    });
  });

  test('is refused waits of two kinds at once', async () => {
    const row = await b.ends(await b.submit(named('mixes')));
    expect(row).toMatchObject({ state: 'FAILED', error: { code: 'MIXED_WAITS', retryable: false } });
  });

  test('sees how the jobs ended that it depends on', async () => {
    const { jobs } = await b.engine.graphs.submitGraph(me, {
      nodes: [
        { name: 'a', job: { task: 'compute', input: { ms: 1 } }, definition: named('compute').definition },
        {
          name: 'b',
          job: { task: 'follows' },
          dependsOn: [{ node: 'a' }],
          definition: named('follows').definition,
        },
      ],
    } as never);
    const id = jobs.get('b') as string;
    expect((await b.ends(id)).state).toBe('COMPLETED');
    expect(await b.result(id)).toMatchObject({
      all: [['a', 'COMPLETED']],
      one: { task: 'compute', state: 'COMPLETED', result: 'computed' },
    });
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
