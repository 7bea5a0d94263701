import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { IdempotencyConflict, InvalidInput, PayloadTooLarge, UnknownTask } from '../../src/core/errors.ts';
import { newUuid } from '../../src/core/ids.ts';
import { jobById } from '../../src/db/reads/job-row.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { SubmitRequest } from '../../src/engine/types.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { engineOptions, me, taskNamed } from '../support/factory.ts';

const people = defineTask({
  name: 'people.import',
  input: z.object({ rows: z.array(z.object({ email: z.email() })), note: z.string().optional() }),
  queue: 'imports',
  maxAttempts: 7,
  run: () => null,
});

describe.each(databases())('submitting on $name', ({ open }) => {
  let database: TestDatabase;
  let engine: Engine;

  beforeAll(async () => {
    database = await open();
    engine = createEngine({
      database,
      channel: createMemoryChannel(),
      options: engineOptions({ maxBytes: { input: 1_000, result: 1_000, checkpoint: 1_000 } }),
    });
    await engine.execution.registerWorker({
      id: newUuid(),
      host: 'test',
      pid: 1,
      queues: null,
      tasks: [taskNamed('echo'), people.definition],
      slots: 1,
      leaseMs: 3_600_000,
    });
  });

  const everything = async () => {
    const [row] = await database.submit.query<Record<string, number>>(
      `select (select count(*) from waymark.jobs) as jobs, (select count(*) from waymark.job_states) as states,
              (select count(*) from waymark.events) as events, (select count(*) from waymark.payloads) as payloads,
              (select count(*) from waymark.idempotency_keys) as keys, (select count(*) from waymark.queues) as queues,
              (select coalesce(sum(n), 0) from waymark.count_deltas) as deltas`,
    );
    return row;
  };
  const job = async (id: string) => {
    const [row] = await database.submit.query<Record<string, unknown>>(
      `select j.*, s.state, s.max_attempts, s.run_at, s.rank, s.queued_at, p.data as input, p.job_id is not null as has_input
       from waymark.jobs j join waymark.job_states s using (id)
       left join waymark.payloads p on p.job_id = j.id and p.kind = 'input' where j.id = $1::uuid`,
      [id],
    );
    return row as Record<string, unknown>;
  };

  test('the answer tells the new job as a read would, whatever was asked for; of one that was there it tells nothing', async () => {
    const requests: SubmitRequest[] = [
      { task: 'echo' },
      {
        task: 'echo',
        input: { a: 1 },
        title: 'T',
        tags: ['x', 'y', 'x'],
        priority: -7,
        queue: 'other',
        maxAttempts: 2,
      },
      { task: 'echo', delayMs: 60_000, timeoutMs: 5, concurrencyKey: 'c', idempotencyKey: 'told' },
      { task: 'echo', runAt: '2000-01-01T00:00:00.123456+05:45', priority: 100 },
      { task: 'echo', runAt: '2100-01-01T00:00:00Z', idempotencyKey: 'until', keyScope: 'UNTIL_FINISHED' },
    ];
    const told = [
      ...(await Promise.all(requests.map((request) => engine.jobs.submit(me, request)))),
      ...(await engine.jobs.submitMany(me, [
        { task: 'echo' },
        { task: 'echo', idempotencyKey: 'in bulk', delayMs: 1 },
      ])),
    ];
    for (const { jobId, deduplicated, job: row } of told) {
      expect(deduplicated).toBe(false);
      expect(row).toEqual(await jobById(database.read, me.tenant, jobId));
    }
    const again = await engine.jobs.submit(me, { task: 'echo', delayMs: 60_000, idempotencyKey: 'told' });
    expect(again).toMatchObject({ deduplicated: true, job: null });
  });

  test('a job takes what the caller leaves open from its task', async () => {
    const { jobId, deduplicated } = await engine.jobs.submit(me, {
      task: 'people.import',
      input: { rows: [{ email: 'a@example.com' }] },
    });
    expect(deduplicated).toBe(false);
    expect(await job(jobId)).toMatchObject({
      state: 'QUEUED',
      queue: 'imports',
      max_attempts: 7,
      priority: 0,
      submitted_by: 'user:local',
      input: { rows: [{ email: 'a@example.com' }] },
    });
  });

  test('a future job is SCHEDULED for its time, a past one is QUEUED now', async () => {
    const later = await engine.jobs.submit(me, { task: 'echo', runAt: '2999-01-01T05:45:00+05:45' });
    expect(await job(later.jobId)).toMatchObject({
      state: 'SCHEDULED',
      run_at: '2999-01-01 00:00:00+00',
      queued_at: null,
    });
    const delayed = await engine.jobs.submit(me, { task: 'echo', delayMs: 60_000 });
    expect(await job(delayed.jobId)).toMatchObject({ state: 'SCHEDULED' });
    const past = await engine.jobs.submit(me, { task: 'echo', runAt: '1999-01-01T00:00:00Z' });
    expect(await job(past.jobId)).toMatchObject({ state: 'QUEUED' });
  });

  test('no input and the input null are two things', async () => {
    const none = await engine.jobs.submit(me, { task: 'echo' });
    expect(await job(none.jobId)).toMatchObject({ has_input: false, input: null });
    const nothing = await engine.jobs.submit(me, { task: 'echo', input: null });
    expect(await job(nothing.jobId)).toMatchObject({ has_input: true, input: null });
  });

  test('an input that has a default may be left out: the handler gets the default', async () => {
    const definition = taskNamed('greet', { inputSchema: { type: 'object', default: { name: 'you' } } });
    const { jobId } = await engine.jobs.submit(me, { task: 'greet' }, { definition });
    expect(await job(jobId)).toMatchObject({ has_input: false });
  });

  test.each([
    ['an unknown task', { task: 'nope', input: 1 }, UnknownTask, 'nope'],
    [
      'an input that fails its schema',
      { task: 'people.import', input: { rows: [{ email: 'a@b.co' }, { email: 'x' }] } },
      InvalidInput,
      'input.rows[1].email',
    ],
    ['an input that is missing', { task: 'people.import' }, InvalidInput, 'input: is required'],
    ['a NUL', { task: 'echo', input: { a: ['\u0000'] } }, InvalidInput, 'input.a[0]'],
    ['a lone surrogate in a title', { task: 'echo', title: 'x\udc00' }, InvalidInput, 'title'],
    ['an empty key', { task: 'echo', idempotencyKey: '' }, InvalidInput, 'idempotencyKey'],
    ['a priority out of range', { task: 'echo', priority: 101 }, InvalidInput, 'priority'],
    ['a queue name that is too long', { task: 'echo', queue: 'q'.repeat(101) }, InvalidInput, 'queue'],
    ['both runAt and delay', { task: 'echo', runAt: '2030-01-01T00:00:00Z', delayMs: 1 }, InvalidInput, 'delay'],
    ['a far-away time', { task: 'echo', runAt: '+123456-01-01T00:00:00Z' }, InvalidInput, 'runAt'],
    ['no attempts', { task: 'echo', maxAttempts: 0 }, InvalidInput, 'maxAttempts'],
    ['too many tags', { task: 'echo', tags: Array.from({ length: 21 }, (_, i) => `t${i}`) }, InvalidInput, 'tags'],
    ['an oversize input', { task: 'echo', input: 'x'.repeat(1_000) }, PayloadTooLarge, 'input'],
  ])('%s is refused by name, and changes nothing', async (_, request, error, names) => {
    const before = await everything();
    const refusal = await engine.jobs.submit(me, request).then(
      () => null,
      (e: unknown) => e,
    );
    expect(refusal).toBeInstanceOf(error);
    expect((refusal as Error).message).toContain(names);
    expect(await everything()).toEqual(before);
  });

  test('an unknown task is answered with the known ones', async () => {
    await expect(engine.jobs.submit(me, { task: 'eco' })).rejects.toMatchObject({ known: ['echo', 'people.import'] });
  });

  test('a bulk call is all or nothing, and says which of its jobs was wrong', async () => {
    await engine.jobs.submit(me, { task: 'echo', input: 1, idempotencyKey: 'taken' });
    const before = await everything();
    const fine = { task: 'echo', input: 'fine' };
    for (const [bad, code] of [
      [{ task: 'people.import', input: { rows: [{ email: 'x' }] } }, 'INVALID_INPUT'],
      [{ task: 'nope' }, 'UNKNOWN_TASK'],
      [{ task: 'echo', input: 2, idempotencyKey: 'taken' }, 'IDEMPOTENCY_CONFLICT'],
      [{ task: 'echo', input: 'x'.repeat(1_000) }, 'PAYLOAD_TOO_LARGE'],
    ] as const) {
      await expect(engine.jobs.submitMany(me, [fine, fine, bad, fine])).rejects.toMatchObject({
        code,
        path: 'inputs[2]',
      });
    }
    await expect(engine.jobs.submitMany(me, Array(1_001).fill(fine))).rejects.toThrow(
      'inputs: must not be more than 1000',
    );
    expect(await everything()).toEqual(before);
  });

  test('a bulk call answers in order, and folds equal keys within itself', async () => {
    const results = await engine.jobs.submitMany(
      me,
      Array.from({ length: 1_000 }, (_, i) => ({
        task: 'echo',
        input: i % 10,
        idempotencyKey: i < 500 ? `fold-${i % 10}` : null,
      })),
    );
    expect(results).toHaveLength(1_000);
    expect(results.map((r) => r.deduplicated)).toEqual(Array.from({ length: 1_000 }, (_, i) => i >= 10 && i < 500));
    for (const i of [0, 7, 499, 500, 999]) expect(await job(results[i]?.jobId ?? '')).toMatchObject({ input: i % 10 });
    expect(await engine.jobs.submitMany(me, [])).toEqual([]);
  });

  test('a key gives one job to 200 concurrent callers, whatever the round', async () => {
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(
        Array.from({ length: 200 }, () =>
          engine.jobs.submit(me, { task: 'echo', input: { round }, idempotencyKey: `race-${round}` }),
        ),
      );
      expect(new Set(answers.map((a) => a.jobId)).size).toBe(1);
    }
  });

  test('a key with another input is a conflict that names the job and both digests', async () => {
    const first = await engine.jobs.submit(me, { task: 'echo', input: { a: 1, b: 2 }, idempotencyKey: 'digest' });
    const same = await engine.jobs.submit(me, { task: 'echo', input: { b: 2, a: 1 }, idempotencyKey: 'digest' });
    expect(same).toMatchObject({ jobId: first.jobId, deduplicated: true });
    const refusal = await engine.jobs.submit(me, { task: 'echo', input: 3, idempotencyKey: 'digest' }).catch((e) => e);
    expect(refusal).toBeInstanceOf(IdempotencyConflict);
    expect(refusal.jobId).toBe(first.jobId);
    expect(refusal.givenDigest).not.toBe(refusal.storedDigest);
  });

  test('a key belongs to its task and its tenant', async () => {
    const key = { idempotencyKey: 'mine', input: { rows: [] } };
    const a = await engine.jobs.submit(me, { task: 'echo', ...key });
    const b = await engine.jobs.submit(me, { task: 'people.import', ...key });
    const c = await engine.jobs.submit({ ...me, tenant: 'other' }, { task: 'echo', ...key });
    expect(new Set([a.jobId, b.jobId, c.jobId]).size).toBe(3);
  });

  test('an expired key is new', async () => {
    const first = await engine.jobs.submit(me, { task: 'echo', input: 1, idempotencyKey: 'old' });
    await database.submit.query(`update waymark.idempotency_keys set expires_at = now() where key = 'old'`);
    const second = await engine.jobs.submit(me, { task: 'echo', input: 2, idempotencyKey: 'old' });
    expect(second.deduplicated).toBe(false);
    expect(second.jobId).not.toBe(first.jobId);
  });

  test('a key that holds until its job is finished neither expires nor is pruned before, whatever its age', async () => {
    const request = { task: 'echo', idempotencyKey: 'while-it-runs', keyScope: 'UNTIL_FINISHED' } as const;
    const first = await engine.jobs.submit(me, { ...request, input: 1 });
    await database.submit.query(`update waymark.idempotency_keys set expires_at = now() where key = 'while-it-runs'`);
    await engine.maintenance.prune();
    const again = await engine.jobs.submit(me, { ...request, input: 2 });
    expect(again).toMatchObject({ jobId: first.jobId, deduplicated: true });
    await engine.jobs.cancel(me, first.jobId);
    const next = await engine.jobs.submit(me, { ...request, input: 3 });
    expect(next.deduplicated).toBe(false);
    expect(next.jobId).not.toBe(first.jobId);
  });

  test('a caller’s own transaction decides: the job exists if and only if it commits', async () => {
    const submitIn = (fail: boolean) =>
      database.submit.transaction(async (tx) => {
        const { jobId } = await engine.jobs.submit(
          me,
          { task: 'echo', input: 'tx', idempotencyKey: `tx-${fail}` },
          { tx },
        );
        if (fail) throw Object.assign(new Error('undo'), { jobId });
        return jobId;
      });
    expect(await job(await submitIn(false))).toMatchObject({ input: 'tx' });
    const undone = await submitIn(true).catch((e: { jobId: string }) => e.jobId);
    expect(await job(undone)).toBeUndefined();
    expect(
      (await engine.jobs.submit(me, { task: 'echo', input: 'other', idempotencyKey: 'tx-true' })).deduplicated,
    ).toBe(false);
  });

  test('what was counted is what is there', async () => {
    await engine.maintenance.fold();
    const [counted] = await database.submit.query(
      `select sum(n)::int as n, (select count(*)::int from waymark.job_states) as jobs from waymark.counts`,
    );
    expect(counted).toMatchObject({ n: (counted as { jobs: number }).jobs });
  });
});
