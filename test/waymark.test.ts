import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { createWaymark, defineTask, InvalidInput, NotFound, type Waymark, type WaymarkOptions } from '../src/index.ts';
import { createPostgresDatabase, describePostgres } from './support/database.ts';

const double = defineTask({
  name: 'double',
  input: z.object({ n: z.number().refine((n) => n < 1_000, 'is too large') }),
  run: (_ctx, { n }) => n * 2,
});

const options: WaymarkOptions = {
  dataDir: 'memory://',
  databaseUrl: null,
  redisUrl: null,
  poll: '100ms',
  actor: 'user:shop',
};

async function ended(waymark: Waymark, id: string) {
  await expect.poll(async () => (await waymark.job(id))?.isTerminal, { timeout: 10_000 }).toBe(true);
  return waymark.job(id);
}

describe('a back end, embedded', () => {
  let waymark: Waymark;
  beforeAll(async () => {
    waymark = await createWaymark({
      ...options,
      setup: ({ db }) => db.execute(sql`create table orders (id int primary key)`),
    });
  });
  afterAll(() => waymark.close());

  test('saves schedules, whose jobs a worker of the same process does', async () => {
    const nightly = { name: 'nightly', task: double, input: { n: 2 }, cron: '0 3 * * *', queue: 'scheduled' };
    const saved = await waymark.saveSchedule({ ...nightly, timezone: 'Europe/Berlin', timeout: '5s' });
    expect(saved).toMatchObject({ name: 'nightly', task: 'double', overlap: 'SKIP', enabled: true, lastJobId: null });
    expect(saved.id).toMatch(/^sch_/);
    expect(await waymark.saveSchedule({ ...nightly, enabled: false })).toMatchObject({ id: saved.id, nextRunAt: null });
    // @ts-expect-error: the task wants a number
    await expect(waymark.saveSchedule({ ...nightly, input: { n: '2' } })).rejects.toBeInstanceOf(InvalidInput);
    // @ts-expect-error: the task wants an input
    const without = () => waymark.saveSchedule({ name: 'b', task: double, cron: '@daily' });
    await expect(without()).rejects.toBeInstanceOf(InvalidInput);
    const { job } = await waymark.runSchedule('nightly');
    expect(job).toMatchObject({ task: 'double', queue: 'scheduled', submittedBy: 'user:shop' });
    const worker = waymark.worker({ tasks: [double], queues: ['scheduled'] });
    await worker.start();
    expect(await ended(waymark, job.id)).toMatchObject({ state: 'COMPLETED' });
    await worker.stop();
    await waymark.deleteSchedule('nightly');
    await expect(waymark.runSchedule('nightly')).rejects.toBeInstanceOf(NotFound);
  });

  test('submits a task object, and a worker of the same process does it', async () => {
    const submitOptions = { idempotencyKey: 'a', title: 'Twice', tags: ['x'], queue: 'worked' };
    const { job, deduplicated } = await waymark.submit(double, { n: 4 }, submitOptions);
    expect(deduplicated).toBe(false);
    expect(job).toMatchObject({
      task: 'double',
      title: 'Twice',
      tags: ['x'],
      state: 'QUEUED',
      submittedBy: 'user:shop',
      run: 1,
    });
    expect(job.id).toMatch(/^job_/);
    expect(await waymark.submit('double', { n: 4 }, { idempotencyKey: 'a' })).toMatchObject({
      job: { id: job.id },
      deduplicated: true,
    });
    const worker = waymark.worker({ tasks: [double], queues: ['worked'] });
    await worker.start();
    expect(await ended(waymark, job.id)).toMatchObject({ state: 'COMPLETED', attemptNumber: 1, error: null });
    await worker.stop();
  });

  test("an input that breaks the task's own schema is refused, also one that JSON Schema cannot say", async () => {
    await expect(waymark.submit(double, { n: 5_000 })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      issues: [{ path: 'input.n' }],
    });
    const items = [
      { task: double, input: { n: 1 } },
      { task: double, input: { n: 5_000 } },
    ];
    await expect(waymark.submitMany(items)).rejects.toMatchObject({
      path: 'inputs[1]',
      issues: [{ path: 'inputs[1].input.n' }],
    });
    await expect(waymark.submit('unknown')).rejects.toMatchObject({ code: 'UNKNOWN_TASK' });
  });

  test('submitMany gives the jobs in order, equal keys one job', async () => {
    const results = await waymark.submitMany([
      { task: double, input: { n: 1 }, options: { priority: 1 } },
      { task: double, input: { n: 2 }, options: { idempotencyKey: 'same' } },
      { task: 'double', input: { n: 2 }, options: { idempotencyKey: 'same' } },
    ]);
    expect(results.map((r) => r.job.priority)).toEqual([1, 0, 0]);
    expect(results[1]?.job.id).toBe(results[2]?.job.id);
  });

  test('cancel and retry give the job as it is then', async () => {
    const { job } = await waymark.submit(double, { n: 1 });
    expect(await waymark.cancel(job.id, { reason: 'no' })).toMatchObject({ state: 'CANCELED', isTerminal: true });
    expect(await waymark.retry(job.id)).toMatchObject({ state: 'QUEUED', run: 2 });
    expect(await waymark.job('job_00000000000000000000000000')).toBeNull();
    await expect(waymark.job('nonsense')).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  test('a queue is paused, resumed and given limits', async () => {
    await waymark.submit(double, { n: 1 }, { queue: 'steered' });
    expect(await waymark.pauseQueue('steered', { reason: 'deploy' })).toMatchObject({
      name: 'steered',
      paused: true,
      pausedBy: 'user:shop',
      pauseReason: 'deploy',
      pausedAt: expect.stringMatching(/Z$/),
    });
    expect(await waymark.resumeQueue('steered')).toMatchObject({ paused: false, pausedAt: null, pausedBy: null });
    const rateLimit = { max: 3, per: '60s' };
    expect(await waymark.updateQueue('steered', { maxRunning: 2, rateLimit })).toMatchObject({
      maxRunning: 2,
      rateLimit: { max: 3, per: '1m' },
    });
    expect(await waymark.updateQueue('steered', { maxRunning: null })).toMatchObject({
      maxRunning: null,
      rateLimit: { max: 3, per: '1m' },
    });
    expect(await waymark.updateQueue('steered', { rateLimit: null })).toMatchObject({ rateLimit: null });
    await expect(waymark.updateQueue('steered', { maxRunning: 0 })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    await expect(waymark.pauseQueue('streeed')).rejects.toMatchObject({ code: 'NOT_FOUND', id: 'streeed' });
    await expect(waymark.updateQueue('steered', { rateLimit: { max: 1, per: 'soon' } })).rejects.toThrow(TypeError);
  });

  test('the application has tables of its own beside the jobs: made by setup, written in the transaction of a submit', async () => {
    const { wake, job } = await waymark.db.transaction(async (tx) => {
      await tx.execute(sql`insert into orders values (1)`);
      return waymark.submit(double, { n: 1 }, { tx });
    });
    wake();
    expect(await waymark.job(job.id)).not.toBeNull();
    const lost: string[] = [];
    const rolledBack = waymark.db.transaction(async (tx) => {
      lost.push((await waymark.submit(double, { n: 2 }, { tx })).job.id);
      throw new Error('no');
    });
    await expect(rolledBack).rejects.toThrow('no');
    expect(await waymark.job(lost[0] ?? '')).toBeNull();
  });

  test('a wrong option is refused by the name of its setting', async () => {
    await expect(createWaymark({ lease: '1s' })).rejects.toMatchObject({
      code: 'INVALID_SETTINGS',
      problems: [expect.stringContaining('WAYMARK_LEASE="1s"')],
    });
  });
});

describePostgres('a back end, on Postgres', () => {
  test("submits inside the caller's own transaction, of Drizzle or of postgres.js", async () => {
    const url = await createPostgresDatabase();
    const client = postgres(url, { max: 2, onnotice: () => {} });
    onTestFinished(() => client.end());
    const waymark = await createWaymark({ ...options, databaseUrl: url });
    const worker = waymark.worker({ tasks: [double] });
    await worker.start();

    const drizzled = await drizzle({ client }).transaction((tx) => waymark.submit(double, { n: 1 }, { tx }));
    drizzled.wake();
    const plain = (await client.begin(async (tx) => [await waymark.submit(double, { n: 2 }, { tx })]))[0];
    plain?.wake();
    for (const { job } of [drizzled, ...(plain ? [plain] : [])]) {
      expect(await ended(waymark, job.id)).toMatchObject({ state: 'COMPLETED' });
    }
    const many = await client.begin((tx) => waymark.submitMany([{ task: double, input: { n: 3 } }], { tx }));
    expect(many).toHaveLength(1);
    // It stops the worker too, and may be called again.
    await waymark.close();
    await waymark.close();
  });
});
