import { beforeAll, expect, test, vi } from 'vitest';
import { newUuid } from '../../src/core/ids.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { describePostgres, type TestDatabase } from '../support/database.ts';
import { deferred, within } from '../support/eventually.ts';
import { engineOptions, insertJob, insertWorker, me, taskNamed } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';

// A hundred rounds each: on a busy machine they take their time.
vi.setConfig({ testTimeout: 120_000 });

// Races need connections that really run side by side, so these are Postgres's alone.
describePostgres('races', ({ open }) => {
  let database: TestDatabase;
  let engine: Engine;
  const random = seededRandom();

  beforeAll(async () => {
    database = await open();
    await database.submit.query(
      `alter database ${new URL(database.url ?? '').pathname.slice(1)} set deadlock_timeout = '200ms'`,
    );
    engine = createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
    await engine.execution.registerWorker({
      id: newUuid(),
      host: 'test',
      pid: 1,
      queues: null,
      tasks: [taskNamed('echo')],
      slots: 1,
      leaseMs: 3_600_000,
    });
  });

  const eventsOf = async (ids: string[]) =>
    database.submit.query<{ id: string; seqs: number[]; terminals: number; state: string }>(
      `select e.job_id as id, array_agg(e.seq order by e.seq) as seqs, s.state,
              count(*) filter (where e.type in ('JobCompleted', 'JobFailed', 'JobCanceled'))::int as terminals
       from waymark.events e join waymark.job_states s on s.id = e.job_id
       where e.job_id = any($1::uuid[]) group by e.job_id, s.state`,
      [`{${ids.join(',')}}`],
    );

  test('many claimers at once take each job exactly once', async () => {
    const workers = await Promise.all(Array.from({ length: 8 }, () => insertWorker(database.submit)));
    const jobs = await engine.jobs.submitMany(
      me,
      Array.from({ length: 1_000 }, (_, i) => ({ task: 'echo', input: i })),
    );
    const taken: string[] = [];
    await Promise.all(
      workers.map(async (id) => {
        for (;;) {
          const claimed = await engine.execution.claim(id, {
            queues: null,
            tasks: ['echo'],
            limit: 1 + Math.floor(random() * 20),
          });
          if (claimed.length === 0) return;
          taken.push(...claimed.map((j) => j.id));
        }
      }),
    );
    expect(taken.length).toBe(1_000);
    expect(new Set(taken)).toEqual(new Set(jobs.map((j) => j.jobId)));
  });

  test('200 bulk submits of the same keys in different orders neither deadlock nor make two jobs of a key', async () => {
    const keys = Array.from({ length: 50 }, (_, i) => `bulk-${i}`);
    const answers = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const order = keys.map((key) => ({ key, at: random() })).sort((a, b) => a.at - b.at);
        const results = await engine.jobs.submitMany(
          me,
          order.map(({ key }) => ({ task: 'echo', input: 'same', idempotencyKey: key })),
        );
        return new Map(order.map(({ key }, i) => [key, results[i]?.jobId]));
      }),
    );
    for (const key of keys) expect(new Set(answers.map((a) => a.get(key))).size, key).toBe(1);
  });

  test('cancel against success, 300 times: one terminal event, and the answer is the truth', async () => {
    const worker = await insertWorker(database.submit);
    const ids = await Promise.all(
      Array.from({ length: 300 }, () => insertJob(database.submit, { state: 'RUNNING', workerId: worker })),
    );
    const answers = await Promise.all(
      ids.map(async (id) => {
        const [canceled, settled] = await Promise.all([
          engine.jobs.cancel(me, id).then(
            (job) => job.state,
            (e: { code: string }) => e.code,
          ),
          engine.execution.settle({ jobId: id, attempt: 1, outcome: 'SUCCEEDED', result: '1', resultDigest: 'd' }),
        ]);
        return { canceled, settled };
      }),
    );
    for (const { canceled, settled } of answers) {
      expect(settled).toEqual({ status: 'settled', state: 'COMPLETED' });
      expect(['RUNNING', 'COMPLETED', 'INVALID_TRANSITION']).toContain(canceled);
    }
    for (const row of await eventsOf(ids)) {
      expect(row.terminals).toBe(1);
      expect(row.seqs).toEqual(row.seqs.map((_, i) => i + 1));
    }
  });

  test('cancel against claim, 300 times: what was canceled while it waited never runs', async () => {
    const worker = await insertWorker(database.submit);
    const task = `cancel-${newUuid()}`;
    const ids = await Promise.all(
      Array.from({ length: 300 }, () => insertJob(database.submit, { state: 'QUEUED', task })),
    );
    const claimed = new Set<string>();
    const claims = (async () => {
      for (;;) {
        const jobs = await engine.execution.claim(worker, { queues: null, tasks: [task], limit: 3 });
        if (jobs.length === 0) return;
        for (const job of jobs) claimed.add(job.id);
      }
    })();
    const states = await Promise.all(ids.map(async (id) => (await engine.jobs.cancel(me, id)).state));
    await claims;
    ids.forEach((id, i) => {
      expect(claimed.has(id), `${states[i]}`).toBe(states[i] === 'RUNNING');
    });
  });

  test('two settles of one attempt at once: one is settled, the other repeated or lost, 100 times', async () => {
    const worker = await insertWorker(database.submit);
    for (let round = 0; round < 100; round++) {
      const id = await insertJob(database.submit, { state: 'RUNNING', workerId: worker });
      const other = createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
      const end = { jobId: id, attempt: 1, result: '1' } as const;
      const fates = await Promise.all([
        engine.execution.settle({ ...end, outcome: 'SUCCEEDED', resultDigest: 'same' }),
        other.execution.settle({ ...end, outcome: 'SUCCEEDED', resultDigest: random() < 0.5 ? 'same' : 'other' }),
      ]);
      expect(fates.filter((f) => f.status === 'settled')).toHaveLength(1);
      const [row] = await eventsOf([id]);
      expect(row).toMatchObject({ terminals: 1, state: 'COMPLETED' });
    }
  });

  test('two writers of one step at once: both get the one saved value, 100 times', async () => {
    const worker = await insertWorker(database.submit);
    const other = createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
    for (let round = 0; round < 100; round++) {
      const id = await insertJob(database.submit, { state: 'RUNNING', workerId: worker });
      const write = (data: string) => ({ jobId: id, attempt: 1, epoch: 1, key: 's', kind: 'STEP', data }) as const;
      const [a, b] = await Promise.all([
        engine.execution.saveCheckpoint(write('"a"')),
        other.execution.transaction(id, 1, async () => write('"b"')),
      ]);
      expect(a.data).toBe(b.data);
      expect([a.existed, b.existed].filter(Boolean)).toHaveLength(1);
      const [row] = await eventsOf([id]);
      expect(row?.seqs).toEqual([1, 2, 3]);
    }
  });

  test('beats, progress, checkpoints and settles of the same jobs in any order never deadlock', async () => {
    const worker = await insertWorker(database.submit);
    const ids = await Promise.all(
      Array.from({ length: 200 }, () => insertJob(database.submit, { state: 'RUNNING', workerId: worker })),
    );
    const shuffled = () =>
      ids
        .map((id) => ({ id, at: random() }))
        .sort((a, b) => a.at - b.at)
        .map((x) => x.id);
    const progress = { current: 1 } as never;
    const rounds = 30;
    await Promise.all([
      (async () => {
        for (let i = 0; i < rounds; i++) {
          await engine.execution.flushProgress(shuffled().map((jobId) => ({ jobId, attempt: 1, progress })));
        }
      })(),
      (async () => {
        for (let i = 0; i < rounds; i++) {
          await Promise.all(
            shuffled()
              .slice(0, 50)
              .map((jobId) =>
                engine.execution.saveCheckpoint({
                  jobId,
                  attempt: 1,
                  epoch: 1,
                  key: `k${i}`,
                  kind: 'VALUE',
                  data: '1',
                }),
              ),
          );
        }
      })(),
      (async () => {
        for (let i = 0; i < rounds; i++) {
          await engine.execution.beat(worker, { busy: 0, draining: false, blocked: false, leaseMs: 3_600_000 });
        }
      })(),
    ]);
    const fates = await Promise.all(
      shuffled().map((jobId) =>
        engine.execution.settle({ jobId, attempt: 1, outcome: 'SUCCEEDED', result: null, resultDigest: 'd' }),
      ),
    );
    expect(fates.every((f) => f.status === 'settled')).toBe(true);
  });

  test('a user transaction that stays open holds up neither the beat nor a neighbour’s settle', async () => {
    const worker = await insertWorker(database.submit);
    const [slow, quick] = await Promise.all(
      [0, 1].map(() => insertJob(database.submit, { state: 'RUNNING', workerId: worker })),
    );
    const opened = deferred();
    const go = deferred();
    const transaction = engine.execution.transaction(slow as string, 1, async (tx) => {
      await tx.query('select 1');
      opened.resolve();
      await go.promise;
      return { jobId: slow as string, attempt: 1, epoch: 1, key: 'k', kind: 'STEP', data: '1' };
    });
    await opened.promise;
    const answer = await within(
      2_000,
      engine.execution.beat(worker, { busy: 2, draining: false, blocked: false, leaseMs: 60_000 }),
    );
    expect(answer.jobs.map((j) => j.jobId).sort()).toEqual([slow, quick].sort());
    expect(
      await within(
        2_000,
        engine.execution.settle({ jobId: quick as string, attempt: 1, outcome: 'SUCCEEDED', result: null }),
      ),
    ).toMatchObject({ status: 'settled' });
    go.resolve();
    await transaction;
  });

  test('a settle waits for a job whose checkpoint is being committed, and holds up no other', async () => {
    const worker = await insertWorker(database.submit);
    const [held, free] = await Promise.all(
      [0, 1].map(() => insertJob(database.submit, { state: 'RUNNING', workerId: worker })),
    );
    const locked = deferred();
    const go = deferred();
    const holder = database.maintenance.transaction(async (tx) => {
      await tx.query('select 1 from waymark.job_states where id = $1::uuid for no key update', [held as string]);
      locked.resolve();
      await go.promise;
    });
    await locked.promise;
    const end = (jobId: string) => engine.execution.settle({ jobId, attempt: 1, outcome: 'SUCCEEDED', result: null });
    const first = end(held as string);
    expect(await within(2_000, end(free as string))).toMatchObject({ status: 'settled' });
    go.resolve();
    await holder;
    expect(await first).toMatchObject({ status: 'settled' });
  });

  test('of several whose rows are held, each is settled when its own is free', async () => {
    const worker = await insertWorker(database.submit);
    const ids = await Promise.all(
      [0, 1, 2, 3].map(() => insertJob(database.submit, { state: 'RUNNING', workerId: worker })),
    );
    const [brief, short, long, free] = ids as [string, string, string, string];
    const hold = async (...held: string[]) => {
      const locked = deferred();
      const go = deferred();
      const done = database.maintenance.transaction(async (tx) => {
        await tx.query('select 1 from waymark.job_states where id = any($1::uuid[]) for no key update', [
          `{${held.join(',')}}`,
        ]);
        locked.resolve();
        await go.promise;
      });
      await locked.promise;
      return async () => {
        go.resolve();
        await done;
      };
    };
    const first = await hold(brief, short);
    const second = await hold(long);
    const end = (jobId: string) => engine.execution.settle({ jobId, attempt: 1, outcome: 'SUCCEEDED', result: null });
    const [ofBrief, ofShort, ofLong, ofFree] = [end(brief), end(short), end(long), end(free)];
    expect(await within(2_000, ofFree)).toMatchObject({ status: 'settled' });
    await first();
    for (const fate of [ofBrief, ofShort]) expect(await within(5_000, fate)).toMatchObject({ status: 'settled' });
    await second();
    expect(await within(5_000, ofLong)).toMatchObject({ status: 'settled' });
  });
});
