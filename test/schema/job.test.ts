import { beforeAll, describe, expect, test } from 'vitest';
import { newUuid, publicId } from '../../src/core/ids.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { engineOptions, me, taskNamed } from '../support/factory.ts';
import { counting, execute, read } from './execute.ts';

const DETAIL = `query ($id: ID!) { job(id: $id) {
  id task title state isTerminal run version lastSeq input result resultDigest attemptNumber failures maxAttempts
  error { code message retryable stack attempt } progress { stage current total fraction etaSeconds data }
  createdAt queuedAt startedAt updatedAt finishedAt pruneAt prunedAt leaseExpiresAt health actions
  worker { id state busy running { id } } cancellation { requestedBy stoppedAt forced } waitingOn { kind detail until ahead }
  attempts { totalCount nodes { number run outcome error { code stack } workerId startedAt heartbeatAt finishedAt resumedFrom } }
  checkpoints { totalCount nodes { key sequence kind data attempt processed errorSamples { message } } }
  events { endSeq lastSeq hasMore nodes { __typename seq summary ... on AttemptEnded { outcome error { code stack } } ... on CheckpointSaved { key checkpoint { data sequence } } ... on JobCompleted { result } } }
  logs { totalCount nodes { level message data } }
} }`;

describe.each(databases())('a job on $name', ({ open }) => {
  let database: TestDatabase;
  let engine: Engine;
  let workerId: string;

  beforeAll(async () => {
    database = await open();
    engine = createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
    workerId = newUuid();
    await engine.execution.registerWorker({
      id: workerId,
      host: 'test',
      pid: 1,
      queues: null,
      tasks: [taskNamed('echo')],
      slots: 10,
      leaseMs: 3_600_000,
    });
  });

  const submit = async (input?: unknown) => (await engine.jobs.submit(me, { task: 'echo', input })).jobId;
  const claim = async () => {
    const [job] = await engine.execution.claim(workerId, { queues: null, tasks: ['echo'], limit: 1 });
    if (!job) throw new Error('nothing to claim');
    return job;
  };
  const detail = async (id: string) => (await read(database.read, DETAIL, { id: publicId('Job', id) })).job;
  const save = (job: { id: string; attempt: number; epoch: number }, key: string, data: unknown) =>
    engine.execution.saveCheckpoint({
      jobId: job.id,
      attempt: job.attempt,
      epoch: job.epoch,
      key,
      kind: 'VALUE',
      data: JSON.stringify(data),
    });
  const succeed = (job: { id: string; attempt: number }, result: string | null) =>
    engine.execution.settle({
      jobId: job.id,
      attempt: job.attempt,
      outcome: 'SUCCEEDED',
      result,
      resultDigest: result && 'd',
    });

  test('tells its whole life: an attempt that failed, one that went on behind a checkpoint, the result', async () => {
    const id = await submit({ n: 1 });
    const first = await claim();
    await save(first, 'half', { at: 50 });
    expect(await detail(id)).toMatchObject({
      state: 'RUNNING',
      attemptNumber: 1,
      health: 'OK',
      waitingOn: null,
      actions: ['CANCEL'],
      worker: { id: publicId('Worker', workerId), state: 'ACTIVE', running: [{ id: publicId('Job', id) }] },
      leaseExpiresAt: expect.stringMatching(/Z$/),
      finishedAt: null,
      result: null,
      error: null,
    });

    const at = new Date().toISOString();
    const error = {
      code: 'E_NET',
      message: 'no route',
      retryable: true,
      stack: 'Error: no route\n    at x',
      attempt: 1,
      at,
    };
    await engine.execution.settle({ jobId: id, attempt: 1, outcome: 'FAILED', error, delayMs: 3_600_000 });
    const failed = await detail(id);
    expect(failed).toMatchObject({
      state: 'RETRYING',
      failures: 1,
      worker: null,
      actions: ['CANCEL', 'RETRY', 'RUN_NOW'],
      error: { code: 'E_NET', message: 'no route', stack: error.stack, attempt: 1 },
      waitingOn: { kind: 'RETRY_DELAY', detail: expect.stringContaining('2 of 3 are left'), ahead: null },
    });
    expect(failed.waitingOn.until).toBe(failed.waitingOn.detail.match(/at (\S+Z)/)?.[1]);

    await engine.jobs.runNow(me, id);
    const second = await claim();
    await save(second, 'half', { at: 75 });
    await engine.execution.appendLogs([
      { id: newUuid(), jobId: id, attempt: 2, at, level: 'info', message: 'one', data: '{"a":1}' },
      { id: newUuid(), jobId: id, attempt: 2, at, level: 'warn', message: 'two', data: null },
    ]);
    await succeed(second, '{"rows":3}');
    const done = await detail(id);
    expect(done).toMatchObject({
      state: 'COMPLETED',
      isTerminal: true,
      result: { rows: 3 },
      error: null,
      worker: null,
      actions: ['RETRY'],
      attempts: {
        totalCount: 2,
        nodes: [
          { number: 1, outcome: 'FAILED', error: { code: 'E_NET', stack: error.stack }, resumedFrom: null },
          { number: 2, outcome: 'SUCCEEDED', error: null, resumedFrom: 'half', workerId: publicId('Worker', workerId) },
        ],
      },
      checkpoints: { totalCount: 1, nodes: [{ key: 'half', data: { at: 75 }, attempt: 2 }] },
      logs: {
        totalCount: 2,
        nodes: [
          { level: 'info', message: 'one', data: { a: 1 } },
          { level: 'warn', message: 'two', data: null },
        ],
      },
    });
    expect(Date.parse(done.pruneAt) - Date.parse(done.finishedAt)).toBe(86_400_000);
    expect(done.updatedAt).toBe(done.finishedAt);
    const moments = [done.createdAt, done.startedAt, done.finishedAt];
    expect(moments).toEqual(moments.toSorted());
    const types = done.events.nodes.map((e: { __typename: string }) => e.__typename);
    expect(types).toEqual([
      'JobSubmitted',
      'AttemptStarted',
      'CheckpointSaved',
      'AttemptEnded',
      'RetryScheduled',
      'JobQueued',
      'AttemptStarted',
      'CheckpointSaved',
      'JobCompleted',
    ]);
    expect(done.events).toMatchObject({ endSeq: 9, lastSeq: 9, hasMore: false });
    // Scalars as of then, the checkpoint as of now.
    expect(done.events.nodes[2]).toMatchObject({ key: 'half', checkpoint: { data: { at: 75 }, sequence: 8 } });
    expect(done.events.nodes[3].error).toEqual({ code: 'E_NET', stack: error.stack });
    expect(done.events.nodes[8].result).toEqual({ rows: 3 });
  });

  test('a result of an earlier run is gone with it; null and nothing are no result', async () => {
    const id = await submit();
    await succeed(await claim(), '"first"');
    await engine.jobs.retry(me, id);
    const job = await claim();
    expect((await detail(id)).result).toBeNull();
    await succeed(job, '"second"');
    const { result, events } = await detail(id);
    expect(result).toBe('second');
    const completed = events.nodes.filter((e: { __typename: string }) => e.__typename === 'JobCompleted');
    expect(completed.map((e: { result: unknown }) => e.result)).toEqual([null, 'second']);
    for (const nothing of ['null', null]) {
      const other = await submit();
      await succeed(await claim(), nothing);
      expect(await detail(other)).toMatchObject({ state: 'COMPLETED', result: null });
    }
  });

  test('in line it says how many are before it; without a worker it says so', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push(await submit());
    expect((await detail(ids[2] ?? '')).waitingOn).toMatchObject({ kind: 'CAPACITY', ahead: 2 });
    await database.work.query(`update waymark.workers set lease_until = now() - interval '1 second'`);
    expect((await detail(ids[0] ?? '')).waitingOn).toMatchObject({
      kind: 'NO_WORKER',
      detail: 'No live worker takes echo from queue default.',
      ahead: 0,
    });
    const { queue, workers } = await read(database.read, '{ queue(name: "default") { starved } workers { state } }');
    expect([queue.starved, workers]).toEqual([true, [{ state: 'LOST' }]]);
    await database.work.query(
      `update waymark.queues set paused = true, paused_by = 'user:ada', pause_reason = 'deploy'`,
    );
    expect((await detail(ids[0] ?? '')).waitingOn).toMatchObject({
      kind: 'QUEUE_PAUSED',
      detail: 'Queue default was paused by user:ada: deploy',
    });
    expect((await read(database.read, '{ queue(name: "default") { starved } }')).queue.starved).toBe(false);
    await database.work.query('update waymark.queues set paused = false');
    await database.work.query(`update waymark.workers set lease_until = now() + interval '1 hour'`);
    for (const id of ids) await engine.jobs.cancel(me, id);
  });

  test('its pages go forwards and backwards', async () => {
    const id = await submit();
    const job = await claim();
    for (const key of ['a', 'b', 'c', 'd']) await save(job, key, key);
    const page = async (args: string) =>
      (
        await read(
          database.read,
          `query ($id: ID!) { job(id: $id) { checkpoints(${args}) { nodes { key } totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }`,
          { id: publicId('Job', id) },
        )
      ).job.checkpoints;
    const keys = (p: { nodes: { key: string }[] }) => p.nodes.map((n) => n.key).join('');
    const first = await page('first: 3');
    expect([keys(first), first.pageInfo.hasNextPage, first.pageInfo.hasPreviousPage, first.totalCount]).toEqual([
      'abc',
      true,
      false,
      4,
    ]);
    const second = await page(`first: 3, after: "${first.pageInfo.endCursor}"`);
    expect([keys(second), second.pageInfo.hasNextPage, second.pageInfo.hasPreviousPage]).toEqual(['d', false, true]);
    const last = await page('last: 3');
    expect([keys(last), last.pageInfo.hasNextPage, last.pageInfo.hasPreviousPage]).toEqual(['bcd', false, true]);
    const before = await page(`last: 3, before: "${last.pageInfo.startCursor}"`);
    expect([keys(before), before.pageInfo.hasNextPage, before.pageInfo.hasPreviousPage]).toEqual(['a', true, false]);
    const { errors } = await execute(
      database.read,
      `{ job(id: "${publicId('Job', id)}") { attempts(after: "${first.pageInfo.endCursor}") { totalCount } } }`,
    );
    expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', argument: 'after' });
    await succeed(job, null);
  });

  test('its facts come behind a place, or the newest first of all', async () => {
    const id = await submit();
    const job = await claim();
    for (const key of ['a', 'b', 'c']) await save(job, key, key);
    await succeed(job, null);
    const page = async (args: string) =>
      (
        await read(
          database.read,
          `query ($id: ID!) { job(id: $id) { events(${args}) { nodes { seq } endSeq lastSeq hasMore } } }`,
          { id: publicId('Job', id) },
        )
      ).job.events;
    const seqs = (...numbers: number[]) => numbers.map((seq) => ({ seq }));
    expect(await page('first: 2')).toEqual({ nodes: seqs(1, 2), endSeq: 2, lastSeq: 6, hasMore: true });
    expect(await page('after: 2, first: 4')).toEqual({
      nodes: seqs(3, 4, 5, 6),
      endSeq: 6,
      lastSeq: 6,
      hasMore: false,
    });
    expect(await page('after: 6')).toEqual({ nodes: [], endSeq: 6, lastSeq: 6, hasMore: false });
    expect(await page('last: 2')).toEqual({ nodes: seqs(5, 6), endSeq: 6, lastSeq: 6, hasMore: false });
    expect(await page('last: 5, after: 4')).toMatchObject({ nodes: seqs(5, 6) });
    for (const args of ['after: -1', 'first: -1', 'first: 1001', 'last: 1001']) {
      const { errors } = await execute(
        database.read,
        `{ job(id: "${publicId('Job', id)}") { events(${args}) { endSeq } } }`,
      );
      expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', argument: args.split(':')[0] });
    }
  });

  test('a list asks for what belongs to its jobs once, not once a job', async () => {
    const everything = `query ($n: Int) { jobs(first: $n, filter: { states: [RUNNING, QUEUED, COMPLETED] }) { totalCount pageInfo { hasPreviousPage } nodes {
      id input result health waitingOn { kind ahead } worker { host running { id } } leaseExpiresAt error { stack }
      attempts { totalCount nodes { number error { stack } } } checkpoints(first: 3) { totalCount nodes { key } }
      logs { totalCount nodes { message } } first: events(first: 3) { nodes { seq ... on CheckpointSaved { checkpoint { key } } ... on JobCompleted { result } } } last: events(last: 1) { nodes { seq } }
    } } }`;
    for (let i = 0; i < 6; i++) await submit(i);
    await claim();
    const one = counting(database.read);
    const many = counting(database.read);
    await read(one, everything, { n: 1 });
    const { jobs } = await read(many, everything, { n: 50 });
    expect(jobs.nodes.length).toBeGreaterThan(8);
    expect(many.statements).toBeLessThanOrEqual(20);
    expect(one.statements).toBeLessThanOrEqual(many.statements);
  });
});
