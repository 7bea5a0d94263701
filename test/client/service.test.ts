import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { createClient, type JobEvent, type WaymarkClient } from '../../src/client/index.ts';
import { createWaymark, defineTask, NonRetryableError, type RunningServer, type Waymark } from '../../src/index.ts';
import { type Deferred, deferred } from '../support/eventually.ts';

let gate: Deferred<void>;

const count = defineTask({
  name: 'count',
  input: z.object({ to: z.number() }),
  async run(ctx, { to }) {
    for (let n = 1; n <= to; n++) {
      await ctx.step(`n${n}`, () => n);
      ctx.progress({ current: n, total: to });
      if (n === to / 2) await gate.promise;
    }
    return { counted: to, at: new Date(0) };
  },
});
const broken = defineTask({
  name: 'broken',
  run(): number {
    throw new NonRetryableError('it is broken', { code: 'BROKEN' });
  },
});
const endless = defineTask({
  name: 'endless',
  run: (ctx) => new Promise<void>((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))),
});
const tasks = [count, broken, endless];

let waymark: Waymark;
let server: RunningServer;
let client: WaymarkClient<typeof tasks>;
const connection: string[] = [];

beforeAll(async () => {
  waymark = await createWaymark({
    dataDir: 'memory://',
    databaseUrl: null,
    redisUrl: null,
    poll: '100ms',
    grace: '1s',
  });
  server = await waymark.serve({ port: 0, tasks });
  await waymark.worker({ tasks, queues: ['default'] }).start();
});
beforeAll(() => {
  client = createClient<typeof tasks>({
    url: `${server.url}/graphql`,
    webSocket: WebSocket,
    onConnection: (s) => connection.push(s),
  });
});
afterEach(() => gate?.resolve());
afterAll(async () => {
  await client.close();
  await waymark.close();
});

/** The same service on the same port, as after a restart. */
async function restartServer(): Promise<void> {
  const port = Number(new URL(server.url).port);
  await server.stop();
  server = await waymark.serve({ port });
}

describe('the client and the service', () => {
  test('submit, wait, result: typed, as JSON', async () => {
    gate = deferred();
    gate.resolve();
    const job = await client.submit('count', { to: 4 }, { title: 'To four', tags: ['a'] });
    expect(job.job).toMatchObject({ title: 'To four', tags: ['a'], submittedBy: 'user:local' });
    const result = await job.result({ timeout: '20s' });
    expect(result).toEqual({ counted: 4, at: '1970-01-01T00:00:00.000Z' });
    expect(await job.get()).toMatchObject({ state: 'COMPLETED', result, input: { to: 4 }, waitingOn: null });
  });

  test('events come each once and progress never goes back, over restarts of the server', async () => {
    gate = deferred();
    const job = await client.submit('count', { to: 20 });
    const events: JobEvent[] = [];
    const versions: number[] = [];
    const reading = (async () => {
      for await (const event of job.events()) events.push(event);
    })();
    const watching = (async () => {
      for await (const { version } of job.progress()) versions.push(version);
    })();
    await expect.poll(() => events.length, { timeout: 20_000 }).toBeGreaterThan(5);
    await restartServer();
    await restartServer();
    gate.resolve();
    await Promise.all([reading, watching]);
    expect(events.map((event) => event.seq)).toEqual(events.map((_, i) => i + 1));
    expect(events.filter((event) => event.type === 'CheckpointSaved')).toHaveLength(20);
    expect(events.at(-1)).toMatchObject({ type: 'JobCompleted', state: 'COMPLETED', result: { counted: 20 } });
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
    expect(connection).toContain('reconnecting');
    // Behind the last event there is nothing, and that is an end and no wait.
    const last = events.at(-1)?.seq ?? 0;
    const rest: number[] = [];
    for await (const { seq } of job.events({ after: last - 2 })) rest.push(seq);
    for await (const { seq } of job.events({ after: last })) rest.push(seq);
    expect(rest).toEqual([last - 1, last]);
  });

  test('failures, cancels and waits that are over are errors of their own', async () => {
    const failing = await client.submit('broken');
    await expect(failing.result({ timeout: '20s' })).rejects.toMatchObject({ name: 'JobFailedError', code: 'BROKEN' });
    const running = await client.submit('endless');
    await client.cancel(running.id, { reason: 'enough' });
    await expect(running.result({ timeout: '20s' })).rejects.toMatchObject({
      name: 'JobCanceledError',
      reason: 'enough',
    });
    const waiting = await client.submit('endless', undefined, { queue: 'nobody' });
    await expect(waiting.result({ timeout: '300ms' })).rejects.toMatchObject({
      name: 'WaitTimeoutError',
      state: 'QUEUED',
      waitingOn: { kind: 'NO_WORKER' },
    });
  });

  test('refusals carry their code and what was said', async () => {
    const loose = client as unknown as WaymarkClient<unknown>;
    await expect(loose.submit('nothing')).rejects.toMatchObject({
      code: 'UNKNOWN_TASK',
      details: { known: ['broken', 'count', 'endless'] },
    });
    await expect(loose.submit('count', { to: 'x' })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      issues: [{ path: 'input.to' }],
    });
    await client.submit('count', { to: 0 }, { idempotencyKey: 'one' });
    await expect(client.submit('count', { to: 1 }, { idempotencyKey: 'one' })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
    const nobody = 'job_00000000000000000000000000';
    expect(await client.job(nobody).get()).toBeNull();
    await expect(client.cancel(nobody)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(client.job(nobody).result()).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(client.job(nobody).events().next()).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('retry opens the next run, runNow hurries a waiting job, jobs lists them', async () => {
    const failed = await client.submit('broken', undefined, { queue: 'default', tags: ['listed'] });
    await failed.result().catch(() => {});
    expect(await client.retry(failed.id, { expectedRun: 1 })).toMatchObject({ run: 2 });
    await expect(client.retry(failed.id, { expectedRun: 1 })).rejects.toMatchObject({ code: 'INVALID_TRANSITION' });
    const later = await client.submit('broken', undefined, { delay: '1h', queue: 'nobody', tags: ['listed'] });
    expect(await client.runNow(later.id)).toMatchObject({ state: 'QUEUED' });
    const { jobs, hasNextPage, endCursor } = await client.jobs({ tags: ['listed'] }, { first: 1 });
    expect([jobs.map((job) => job.id), hasNextPage]).toEqual([[later.id], true]);
    const next = await client.jobs({ tags: ['listed'] }, { first: 1, after: endCursor ?? '' });
    expect(next.jobs.map((job) => job.id)).toEqual([failed.id]);
  });
});
