import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newUuid } from '../../src/core/ids.ts';
import { allows, isTerminal, JOB_STATES, type JobState, TRANSITIONS, type Verb } from '../../src/core/state.ts';
import type { Executor } from '../../src/db/types.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { AttemptEnd } from '../../src/engine/types.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { databases } from '../support/database.ts';
import { engineOptions, insertJob, insertWorker, me } from '../support/factory.ts';

const VERBS = (Object.keys(TRANSITIONS) as Verb[]).filter((v) => v !== 'submit');

/** One database serves the file; each test has a worker and a task of its own. */
interface Bench {
  engine: Engine;
  db: Executor;
  workerId: string;
  task: string;
}

const end = (jobId: string, over: Partial<AttemptEnd>): AttemptEnd => ({
  jobId,
  attempt: 1,
  outcome: 'SUCCEEDED',
  ...over,
});
const error = { code: 'Oops', message: 'oops', retryable: true, attempt: 1, at: new Date(0).toISOString() };

/** Each verb as its public call; a refusal by a typed error is fine, a silent nothing too: the row tells. */
const APPLY: Record<string, (b: Bench, id: string) => Promise<unknown>> = {
  stage: ({ engine }) => engine.maintenance.stage(),
  claim: ({ engine, workerId, task }) => engine.execution.claim(workerId, { queues: null, tasks: [task], limit: 10 }),
  complete: ({ engine }, id) => engine.execution.settle(end(id, { result: '1', resultDigest: 'd' })),
  fail: ({ engine }, id) => engine.execution.settle(end(id, { outcome: 'FAILED', error, delayMs: 60_000 })),
  postpone: ({ engine }, id) => engine.execution.settle(end(id, { outcome: 'POSTPONED', delayMs: 60_000 })),
  release: ({ engine }, id) => engine.execution.settle(end(id, { outcome: 'RELEASED' })),
  stop: async ({ engine, db }, id) => {
    await db.query(
      `update waymark.job_states set cancel_requested_at = changed_at, cancel_requested_by = 'user:local'
       where id = $1::uuid and state = 'RUNNING'`,
      [id],
    );
    return engine.execution.settle(end(id, { outcome: 'CANCELED' }));
  },
  rescue: async ({ engine, db, workerId }) => {
    await db.query(`update waymark.workers set state = 'LOST' where id = $1::uuid`, [workerId]);
    return engine.maintenance.recover();
  },
  cancel: ({ engine }, id) => engine.jobs.cancel(me, id, { reason: 'because' }),
  runNow: ({ engine }, id) => engine.jobs.runNow(me, id),
  retry: ({ engine }, id) => engine.jobs.retry(me, id),
  ready: ({ engine }) => engine.maintenance.followUp(),
  upstreamFailed: ({ engine }) => engine.maintenance.followUp(),
  revive: ({ engine }) => engine.maintenance.followUp(),
  suspend: ({ engine }, id) => {
    const sleeps = [{ key: 'nap', delayMs: 60_000, until: null }];
    return engine.execution.settle(end(id, { outcome: 'SUSPENDED', wait: { kind: 'SLEEP', detail: 'naps', sleeps } }));
  },
  decide: ({ engine }, jobId) => engine.approvals.decide(me, { jobId }, 'APPROVED'),
};

/** An upstream job in this state whose dependants are to be told. */
async function upstream(
  { db, task }: Bench,
  id: string,
  state: JobState,
  followUp: 'ENDED' | 'REVIVED',
): Promise<string> {
  const other = await insertJob(db, { state, task: `${task} upstream` });
  await db.query(
    `insert into waymark.job_dependencies (job_id, upstream_id, kind, policy, position)
     values ($1::uuid, $2::uuid, 'DEPENDENCY', 'CANCEL', 0)`,
    [id, other],
  );
  await db.query('insert into waymark.followups (job_id, kind, created_at) values ($1::uuid, $2, now())', [
    other,
    followUp,
  ]);
  return other;
}

/** What a verb of another job, or of a person, needs to find. */
const PREPARE: Record<string, (b: Bench, id: string, from: JobState) => Promise<unknown>> = {
  ready: (b, id) => upstream(b, id, 'COMPLETED', 'ENDED'),
  upstreamFailed: (b, id) => upstream(b, id, 'FAILED', 'ENDED'),
  revive: async (b, id) => {
    const other = await upstream(b, id, 'QUEUED', 'REVIVED');
    await b.db.query('update waymark.job_states set failed_upstream_id = $2::uuid where id = $1::uuid', [id, other]);
  },
  decide: async ({ db }, id, from) => {
    // A job asks only while it runs; one that goes on, asks on.
    if (from !== 'WAITING_FOR_REVIEW') return;
    await db.query(
      `insert into waymark.approvals (id, tenant, job_id, run, epoch, key, state, title, approvers, required_approvals,
         allow_submitter, on_expire, digest, requested_at)
       values ($2::uuid, 'default', $1::uuid, 1, 1, 'x', 'OPEN', 'X', '{}', 1, true, 'FAIL', 'd', now())`,
      [id, newUuid()],
    );
  },
};

describe.each(databases())('the state machine on $name', ({ open }) => {
  let b: Bench;
  beforeAll(async () => {
    const database = await open();
    const engine = createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
    b = { engine, db: database.submit, workerId: '', task: '' };
    await b.db.query(`insert into waymark.queues (name, id, created_at) values ('default', $1::uuid, now())`, [
      newUuid(),
    ]);
  });
  beforeEach(async () => {
    b.task = `task-${newUuid()}`;
    b.workerId = await insertWorker(b.db, { tasks: [b.task] });
  });

  const insert = (job: Omit<Parameters<typeof insertJob>[1], 'task'>) => insertJob(b.db, { ...job, task: b.task });
  const claim = (workerId = b.workerId, limit = 1) =>
    b.engine.execution.claim(workerId, { queues: null, tasks: [b.task], limit });
  const snapshot = async (id: string) => {
    const [state] = await b.db.query<Record<string, unknown> & { state: JobState }>(
      'select * from waymark.job_states where id = $1::uuid',
      [id],
    );
    const events = await b.db.query<{ seq: number; type: string; state: JobState; at: string }>(
      'select seq, type, state, at from waymark.events where job_id = $1::uuid order by seq',
      [id],
    );
    if (!state) throw new Error('the job is gone');
    return { state, events };
  };

  test.each(VERBS.flatMap((verb) => JOB_STATES.map((from) => ({ verb, from }))))(
    '$verb from $from moves as listed, or leaves the row untouched',
    async ({ verb, from }) => {
      const id = await insert({ state: from, workerId: b.workerId });
      await PREPARE[verb]?.(b, id, from);
      const before = await snapshot(id);
      await APPLY[verb]?.(b, id).catch((refusal: { code?: string }) => {
        expect(refusal.code).toMatch(/^(INVALID_TRANSITION|INVALID_INPUT|NOT_WAITING)$/);
        expect(allows(verb, from)).toBe(false);
      });
      const after = await snapshot(id);

      if (!allows(verb, from)) {
        expect(after).toEqual(before);
        return;
      }
      expect(TRANSITIONS[verb].to).toContain(after.state.state);
      expect(after.state.version).toBe((before.state.version as number) + 1);
      expect(after.events.map((e) => e.seq)).toEqual(after.events.map((_, i) => i + 1));
      expect(after.events.length).toBeGreaterThan(before.events.length);
      expect(after.state.last_seq).toBe(after.events.length);
      expect(after.events.at(-1)?.state).toBe(after.state.state);
      expect(after.state.finished_at !== null).toBe(isTerminal(after.state.state));
      expect(after.state.worker_id !== null).toBe(after.state.state === 'RUNNING');
      const times = after.events.map((e) => e.at);
      expect(times).toEqual([...times].sort());
    },
  );

  test.each(['fail', 'postpone', 'release', 'rescue'] as const)(
    'a requested cancel wins the edge: %s of a job being canceled ends in CANCELED',
    async (verb) => {
      const id = await insert({ state: 'RUNNING', workerId: b.workerId, canceling: true });
      await APPLY[verb]?.(b, id);
      expect((await snapshot(id)).state.state).toBe('CANCELED');
    },
  );

  test('success and a final failure stand, even when a cancel was requested', async () => {
    const done = await insert({ state: 'RUNNING', workerId: b.workerId, canceling: true });
    await b.engine.execution.settle(end(done, {}));
    expect((await snapshot(done)).state.state).toBe('COMPLETED');
    const dead = await insert({ state: 'RUNNING', workerId: b.workerId, canceling: true, maxAttempts: 1 });
    await b.engine.execution.settle(end(dead, { outcome: 'FAILED', error }));
    expect((await snapshot(dead)).state.state).toBe('FAILED');
  });

  test('whatever an older attempt says is refused: settle, checkpoint, transaction, progress, cancel delivery', async () => {
    const id = await insert({ state: 'RUNNING', workerId: b.workerId });
    await b.engine.execution.settle(end(id, { outcome: 'RELEASED' }));
    await claim();
    const before = await snapshot(id);
    expect(before.state).toMatchObject({ state: 'RUNNING', attempt: 2 });

    expect(await b.engine.execution.settle(end(id, { result: '"late"', resultDigest: 'late' }))).toEqual({
      status: 'lost',
    });
    const write = { jobId: id, attempt: 1, epoch: 1, key: 'late', kind: 'STEP', data: '1' } as const;
    await expect(b.engine.execution.saveCheckpoint(write)).rejects.toMatchObject({ code: 'LEASE_LOST' });
    await expect(b.engine.execution.transaction(id, 1, async () => write)).rejects.toMatchObject({
      code: 'LEASE_LOST',
    });
    const progress = { stage: 'late', current: 1 } as never;
    expect(await b.engine.execution.flushProgress([{ jobId: id, attempt: 1, progress }])).toEqual([]);
    await b.engine.execution.cancelDelivered(id, 1);
    expect(await snapshot(id)).toEqual(before);
  });

  test('a settle that is repeated because its answer was lost is told so, and writes nothing again', async () => {
    const id = await insert({ state: 'RUNNING', workerId: b.workerId });
    const first = end(id, { result: '{"rows":1}', resultDigest: 'd1' });
    expect(await b.engine.execution.settle(first)).toEqual({ status: 'settled', state: 'COMPLETED' });
    const before = await snapshot(id);
    expect(await b.engine.execution.settle(first)).toEqual({ status: 'repeated', state: 'COMPLETED' });
    expect(await b.engine.execution.settle(end(id, { result: '2', resultDigest: 'd2' }))).toEqual({ status: 'lost' });
    expect(await snapshot(id)).toEqual(before);
  });

  test('a batch whose commit came after all is not committed again by its repetition', async () => {
    const id = await insert({ state: 'RUNNING', workerId: b.workerId });
    await b.db.query('create table if not exists public.rows_of_batches (job text, n int)');
    const batch = (processed: number) =>
      b.engine.execution.transaction(id, 1, async (tx) => {
        await tx.query('insert into public.rows_of_batches values ($1, $2::int)', [id, processed]);
        return { jobId: id, attempt: 1, epoch: 1, key: 'all', kind: 'CURSOR', data: `{"at":${processed}}`, processed };
      });
    expect(await batch(10)).toEqual({ data: { at: 10 }, existed: false });
    const before = await snapshot(id);
    expect(await batch(10)).toEqual({ data: { at: 10 }, existed: true });
    expect(await batch(5)).toEqual({ data: { at: 10 }, existed: true });
    expect(await snapshot(id)).toEqual(before);
    expect(await batch(20)).toEqual({ data: { at: 20 }, existed: false });
    const rows = await b.db.query('select n from public.rows_of_batches where job = $1 order by n', [id]);
    expect(rows).toEqual([{ n: 10 }, { n: 20 }]);
  });

  test('a budget of n allows n failed attempts, whatever their kind, and a first stall goes back at once', async () => {
    const id = await insert({ state: 'RUNNING', workerId: b.workerId });
    const again = async () => {
      await b.engine.maintenance.stage();
      const [job] = await claim();
      return job?.attempt as number;
    };
    await b.engine.execution.settle(end(id, { outcome: 'STALLED', error, delayMs: 60_000 }));
    expect((await snapshot(id)).state).toMatchObject({ state: 'QUEUED', failures: 1 });
    await b.engine.execution.settle(end(id, { attempt: await again(), outcome: 'TIMED_OUT', error, delayMs: 0 }));
    expect((await snapshot(id)).state).toMatchObject({ state: 'RETRYING', failures: 2 });
    await b.engine.execution.settle(end(id, { attempt: await again(), outcome: 'NOT_ADVANCING', error, delayMs: 0 }));
    expect((await snapshot(id)).state).toMatchObject({ state: 'FAILED', failures: 3, attempt: 3 });
    const attempts = await b.db.query(
      'select number, outcome from waymark.attempts where job_id = $1::uuid order by number',
      [id],
    );
    expect(attempts).toEqual([
      { number: 1, outcome: 'STALLED' },
      { number: 2, outcome: 'TIMED_OUT' },
      { number: 3, outcome: 'NOT_ADVANCING' },
    ]);
  });

  test('handing a job back uses no budget, but the 21st time in a row counts as a stall', async () => {
    const id = await insert({ state: 'RUNNING', workerId: b.workerId });
    let attempt = 1;
    for (let i = 0; i < 20; i++) {
      await b.engine.execution.settle(end(id, { attempt, outcome: 'RELEASED' }));
      expect((await snapshot(id)).state).toMatchObject({ state: 'QUEUED', failures: 0 });
      const [job] = await claim();
      attempt = job?.attempt as number;
    }
    await b.engine.execution.settle(end(id, { attempt, outcome: 'CANCELED' }));
    expect((await snapshot(id)).state).toMatchObject({
      state: 'QUEUED',
      failures: 1,
      stalls: 1,
      error: { code: 'STALLED' },
    });
  });

  test('a run that asks to come back later more than 1,000 times fails, and carries an error that says so', async () => {
    const id = await insert({ state: 'RUNNING', workerId: b.workerId });
    await b.db.query('update waymark.job_states set suspensions = 999 where id = $1::uuid', [id]);
    await b.engine.execution.settle(end(id, { outcome: 'POSTPONED', delayMs: 0 }));
    expect((await snapshot(id)).state).toMatchObject({ state: 'SCHEDULED', suspensions: 1_000, error: null });
    await b.engine.maintenance.stage();
    const [job] = await claim();
    await b.engine.execution.settle(end(id, { attempt: job?.attempt as number, outcome: 'POSTPONED', delayMs: 0 }));
    expect((await snapshot(id)).state).toMatchObject({
      state: 'FAILED',
      failures: 0,
      error: { code: 'RetryLater', retryable: false },
    });
  });

  test('a paused queue gives nothing, and neither does a worker whose lease is over', async () => {
    await insert({ state: 'QUEUED' });
    await b.db.query(`update waymark.queues set paused = true where name = 'default'`);
    expect(await claim(b.workerId)).toEqual([]);
    await b.db.query(`update waymark.queues set paused = false where name = 'default'`);
    expect(await claim(await insertWorker(b.db, { leaseMs: -1_000 }))).toEqual([]);
    expect(await claim(newUuid())).toEqual([]);
    expect(await claim(b.workerId)).toHaveLength(1);
  });
});
