import { setTimeout as pause } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { newUuid } from '../../src/core/ids.ts';
import type { Db } from '../../src/db/types.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { deferred, eventually } from '../support/eventually.ts';
import { engineOptions, insertJob, insertWorker, me, taskNamed } from '../support/factory.ts';

const LEASE_MS = 300;

describe.each(databases())('maintenance on $name', ({ open }) => {
  let database: TestDatabase;
  let engine: Engine;
  const engineWith = (over: Parameters<typeof engineOptions>[0] = {}) =>
    createEngine({
      database,
      channel: createMemoryChannel(),
      options: engineOptions({ leaseMs: LEASE_MS, sweepMs: 50, ...over }),
    });

  beforeEach(async () => {
    database = await open();
    engine = engineWith();
  });

  const one = async <Row>(text: string, ...params: string[]) =>
    (await database.submit.query<Row>(text, params))[0] as Row;
  const stateOf = (id: string) =>
    one<{ state: string; failures: number; error: { code: string } | null; rank: string }>(
      'select state, failures, error, rank from waymark.job_states where id = $1::uuid',
      id,
    );
  const rowsLeft = async () =>
    one<Record<string, number>>(
      `select (select count(*)::int from waymark.jobs) as jobs, (select count(*)::int from waymark.job_states) as states,
              (select count(*)::int from waymark.payloads) as payloads, (select count(*)::int from waymark.attempts) as attempts,
              (select count(*)::int from waymark.checkpoints) as checkpoints, (select count(*)::int from waymark.events) as events,
              (select count(*)::int from waymark.job_logs) as logs, (select count(*)::int from waymark.idempotency_keys) as keys`,
    );
  /** Sweeps until one rescues: the first only opens the contact that must last a lease. */
  const rescued = (e = engine) =>
    eventually(async () => {
      const result = await e.maintenance.rescue();
      expect(result.rescued).toBeGreaterThan(0);
      return result;
    });

  test('a job whose worker lost its lease goes back at once, at its old rank; the next loss waits', async () => {
    const dead = await insertWorker(database.submit, { leaseMs: -1 });
    const id = await insertJob(database.submit, { state: 'RUNNING', workerId: dead });
    const { rank } = await stateOf(id);
    expect(await rescued()).toMatchObject({ lostWorkers: 1, rescued: 1 });
    expect(await stateOf(id)).toMatchObject({ state: 'QUEUED', failures: 1, rank });

    const again = await insertWorker(database.submit, { tasks: ['echo'] });
    await database.submit.query(
      `insert into waymark.queues (name, id, created_at) values ('default', $1::uuid, now())`,
      [newUuid()],
    );
    await engine.execution.claim(again, { queues: null, tasks: ['echo'], limit: 1 });
    await database.submit.query(`update waymark.workers set lease_until = now() - interval '1 s' where id = $1::uuid`, [
      again,
    ]);
    await rescued();
    expect(await stateOf(id)).toMatchObject({ state: 'RETRYING', failures: 2, error: { code: 'STALLED' } });
  });

  test('a job that lost every worker it had ends in FAILED, named POISON', async () => {
    const dead = await insertWorker(database.submit, { leaseMs: -1 });
    const id = await insertJob(database.submit, { state: 'RUNNING', workerId: dead, maxAttempts: 2 });
    await database.submit.query('update waymark.job_states set failures = 1, stalls = 1 where id = $1::uuid', [id]);
    await rescued();
    expect(await stateOf(id)).toMatchObject({ state: 'FAILED', failures: 2, error: { code: 'POISON' } });
  });

  test('a worker that is lost stays lost: its beat says so, and it can claim nothing', async () => {
    const id = await insertWorker(database.submit, { leaseMs: -1 });
    await eventually(async () => expect((await engine.maintenance.rescue()).lostWorkers).toBe(1));
    const beat = await engine.execution.beat(id, { busy: 0, draining: false, blocked: false, leaseMs: 60_000 });
    expect(beat).toEqual({ alive: false, jobs: [] });
  });

  test('nobody is rescued before this process was in contact for a whole lease', async () => {
    const dead = await insertWorker(database.submit, { leaseMs: -1 });
    await insertJob(database.submit, { state: 'RUNNING', workerId: dead });
    const patient = engineWith({ leaseMs: 60_000 });
    for (let i = 0; i < 5; i++) expect(await patient.maintenance.rescue()).toEqual({ lostWorkers: 0, rescued: 0 });
  });

  test('a question that waited out an outage was no contact: workers get a whole lease behind the answer', async () => {
    const gate = { opened: Promise.resolve() };
    const { maintenance } = database;
    const held: Db = {
      kind: 'db',
      user: maintenance.user,
      query: async (text, params) => gate.opened.then(() => maintenance.query(text, params)),
      transaction: (fn, options) => maintenance.transaction(fn, options),
    };
    const patient = createEngine({
      database: { ...database, maintenance: held },
      channel: createMemoryChannel(),
      options: engineOptions({ leaseMs: LEASE_MS, sweepMs: 50 }),
    });
    const lost = await insertWorker(database.submit, { leaseMs: -1 });
    await insertJob(database.submit, { state: 'RUNNING', workerId: lost });
    await rescued(patient);

    const silent = await insertWorker(database.submit, { leaseMs: -1 });
    await insertJob(database.submit, { state: 'RUNNING', workerId: silent });
    const back = deferred();
    gate.opened = back.promise;
    const asked = patient.maintenance.rescue();
    // The outage itself.
    await pause(LEASE_MS);
    back.resolve();
    expect(await asked).toEqual({ lostWorkers: 0, rescued: 0 });
    expect(await rescued(patient)).toMatchObject({ lostWorkers: 1, rescued: 1 });
  });

  test('a live worker keeps its job, however long it runs', async () => {
    const alive = await insertWorker(database.submit);
    const dead = await insertWorker(database.submit, { leaseMs: -1 });
    const running = await insertJob(database.submit, { state: 'RUNNING', workerId: alive });
    await insertJob(database.submit, { state: 'RUNNING', workerId: dead });
    await database.submit.query(`update waymark.job_states set last_advance_at = now() - interval '1 day'`);
    expect((await rescued()).rescued).toBe(1);
    expect(await stateOf(running)).toMatchObject({ state: 'RUNNING', failures: 0 });
  });

  test('a job without progress for longer than its task allows ends its attempt as NOT_ADVANCING', async () => {
    const alive = await insertWorker(database.submit);
    const id = await insertJob(database.submit, { state: 'RUNNING', workerId: alive });
    await database.submit.query('update waymark.jobs set stall_timeout_ms = 1000 where id = $1::uuid', [id]);
    await database.submit.query(
      `update waymark.job_states set last_advance_at = now() - interval '2 s' where id = $1::uuid`,
      [id],
    );
    await rescued();
    expect(await stateOf(id)).toMatchObject({ state: 'RETRYING', failures: 1, error: { code: 'NOT_ADVANCING' } });
  });

  test('the sole owner of an embedded database takes back at once what an earlier worker ran', async () => {
    const before = await insertWorker(database.submit);
    const id = await insertJob(database.submit, { state: 'RUNNING', workerId: before });
    expect(await engine.maintenance.recover()).toEqual({ lostWorkers: 1, rescued: 1 });
    expect(await stateOf(id)).toMatchObject({ state: 'QUEUED' });
  });

  test('staging says when the next job is due, and moves what is due', async () => {
    await engine.execution.registerWorker({
      id: newUuid(),
      host: 't',
      pid: 1,
      queues: null,
      tasks: [taskNamed('echo')],
      slots: 1,
      leaseMs: 60_000,
    });
    expect(await engine.maintenance.stage()).toEqual({ staged: 0, nextDueMs: null });
    const { jobId } = await engine.jobs.submit(me, { task: 'echo', delayMs: 60_000 });
    const { staged, nextDueMs } = await engine.maintenance.stage();
    expect(staged).toBe(0);
    expect(nextDueMs).toBeGreaterThan(50_000);
    expect(nextDueMs).toBeLessThanOrEqual(60_000);
    await database.submit.query(`update waymark.job_states set run_at = now() - interval '1 s' where id = $1::uuid`, [
      jobId,
    ]);
    expect((await engine.maintenance.stage()).staged).toBe(1);
    expect(await stateOf(jobId)).toMatchObject({ state: 'QUEUED' });
  });

  test('what is past its retention goes with everything that belongs to it, and nothing else does', async () => {
    const worker = newUuid();
    await engine.execution.registerWorker({
      id: worker,
      host: 't',
      pid: 1,
      queues: null,
      tasks: [taskNamed('echo')],
      slots: 1,
      leaseMs: 60_000,
    });
    const { jobId } = await engine.jobs.submit(me, { task: 'echo', input: { a: 1 } });
    const keyed = await engine.jobs.submit(me, { task: 'echo', input: { b: 1 }, idempotencyKey: 'kept' });
    for (const job of await engine.execution.claim(worker, { queues: null, tasks: ['echo'], limit: 2 })) {
      await engine.execution.saveCheckpoint({ jobId: job.id, attempt: 1, epoch: 1, key: 's', kind: 'STEP', data: '1' });
      await engine.execution.appendLogs([
        {
          id: newUuid(),
          jobId: job.id,
          attempt: 1,
          at: new Date().toISOString(),
          level: 'info',
          message: 'm',
          data: null,
        },
      ]);
      await engine.execution.settle({
        jobId: job.id,
        attempt: 1,
        outcome: 'SUCCEEDED',
        result: '1',
        resultDigest: 'd',
      });
    }
    const waiting = await engine.jobs.submit(me, { task: 'echo', input: 'waits' });
    expect(await engine.maintenance.prune()).toEqual({ pruned: 0 });

    await database.submit.query(
      `update waymark.job_states set finished_at = finished_at - interval '2 days' where finished_at is not null`,
    );
    expect(await engine.maintenance.prune()).toEqual({ pruned: 2 });
    expect(await rowsLeft()).toEqual({
      jobs: 2,
      states: 2,
      payloads: 1,
      attempts: 0,
      checkpoints: 0,
      events: 1,
      logs: 0,
      keys: 1,
    });
    expect(await stateOf(jobId)).toBeUndefined();
    expect(await stateOf(waiting.jobId)).toMatchObject({ state: 'QUEUED' });

    // The key still answers with its job, whose row is bare; retrying it is refused, since its input is gone.
    expect(await engine.jobs.submit(me, { task: 'echo', input: { b: 1 }, idempotencyKey: 'kept' })).toMatchObject({
      jobId: keyed.jobId,
      deduplicated: true,
    });
    await expect(engine.jobs.retry(me, keyed.jobId)).rejects.toMatchObject({ code: 'INVALID_TRANSITION' });
    expect(await engine.maintenance.prune()).toEqual({ pruned: 0 });

    // With the key's time the row goes, too, and the key is new.
    await database.submit.query('update waymark.idempotency_keys set expires_at = now()');
    expect(await engine.maintenance.prune()).toEqual({ pruned: 1 });
    expect(await rowsLeft()).toMatchObject({ jobs: 1, states: 1, keys: 0 });
    await engine.maintenance.fold();
    expect(await database.submit.query(`select state, n from waymark.counts where n <> 0`)).toEqual([
      { state: 'QUEUED', n: 1 },
    ]);
  });

  test('a bare row goes when no key leads to it any more and its own would have expired', async () => {
    const request = { task: 'echo', idempotencyKey: 'again' };
    const submit = () => engine.jobs.submit(me, request, { definition: taskNamed('echo') });
    const twoDaysLater = (column: string) =>
      database.submit.query(`update waymark.job_states set ${column} = ${column} - interval '2 days'`);
    const { jobId: first } = await submit();
    await engine.jobs.cancel(me, first);
    await twoDaysLater('finished_at');
    expect(await engine.maintenance.prune()).toEqual({ pruned: 1 });
    await twoDaysLater('pruned_at');
    expect(await engine.maintenance.prune()).toEqual({ pruned: 0 });

    // The new job takes the expired key over before a pruner has come by.
    await database.submit.query('update waymark.idempotency_keys set expires_at = now()');
    await database.submit.query('update waymark.job_states set pruned_at = now()');
    const { jobId: second } = await submit();
    expect(await engine.maintenance.prune()).toEqual({ pruned: 0 });
    await twoDaysLater('pruned_at');
    expect(await engine.maintenance.prune()).toEqual({ pruned: 1 });
    expect(await stateOf(first)).toBeUndefined();
    expect(await stateOf(second)).toMatchObject({ state: 'QUEUED' });
    expect(await rowsLeft()).toMatchObject({ jobs: 1, states: 1, keys: 1 });
    expect(await submit()).toMatchObject({ jobId: second, deduplicated: true });
  });

  test('a job that is retried is not pruned, however old its first run', async () => {
    const id = await insertJob(database.submit, { state: 'FAILED' });
    await database.submit.query(`update waymark.job_states set finished_at = now() - interval '1 year'`);
    await engine.jobs.retry(me, id);
    expect(await engine.maintenance.prune()).toEqual({ pruned: 0 });
    expect(await stateOf(id)).toMatchObject({ state: 'QUEUED' });
  });
});
