import { expect, onTestFinished, test, vi } from 'vitest';
import { openDatabase } from '../../src/db/open.ts';
import type { Database, SqlParam, Tx } from '../../src/db/types.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { AttemptEnd, ClaimedJob } from '../../src/engine/types.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { createPostgresDatabase, describePostgres } from '../support/database.ts';
import { deferred, eventually, within } from '../support/eventually.ts';
import { engineOptions, insertWorker, me, taskNamed } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';

const ENGINES = 4;
const ROUNDS = 100;

interface Process {
  engine: Engine;
  worker: string;
}

// A hundred rounds each: on a busy machine they take their time.
vi.setConfig({ testTimeout: 120_000 });

// Engines with connections of their own, as in so many processes: these races need statements that run side by side.
describePostgres('races between jobs that belong together', () => {
  async function processes(): Promise<{
    all: Process[];
    states(ids: readonly string[]): Promise<Map<string, string>>;
    childCount(): Promise<number>;
  }> {
    const url = await createPostgresDatabase();
    const poolSizes = { submit: 4, work: 4, beat: 1, read: 1, maintenance: 1, user: 1 };
    const databases = await Promise.all(Array.from({ length: ENGINES }, () => openDatabase({ url, poolSizes })));
    onTestFinished(async () => void (await Promise.all(databases.map((d) => d.close()))));
    const all: Process[] = [];
    for (const database of databases) {
      const engine = createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
      await engine.execution.registerTasks([taskNamed('echo', { maxAttempts: 1 })]);
      all.push({ engine, worker: await insertWorker(database.submit) });
    }
    const [first] = databases;
    return {
      all,
      async states(ids) {
        const rows = await first?.read.query<{ id: string; state: string }>(
          'select id, state from waymark.job_states where id = any($1::uuid[])',
          [`{${ids.join(',')}}`],
        );
        return new Map(rows?.map((row) => [row.id, row.state]));
      },
      async childCount() {
        const rows = await first?.read.query<{ n: number }>(
          'select count(*)::int as n from waymark.jobs where parent_id is not null',
        );
        return rows?.[0]?.n ?? 0;
      },
    };
  }

  const claim = ({ engine, worker }: Process, limit: number): Promise<ClaimedJob[]> =>
    engine.execution.claim(worker, { queues: null, tasks: ['echo'], limit });

  function endOf({ id: jobId, attempt }: ClaimedJob, fails: boolean): AttemptEnd {
    if (!fails) return { jobId, attempt, outcome: 'SUCCEEDED', result: null };
    const error = { code: 'BAD', message: 'bad', retryable: false, attempt, at: new Date(0).toISOString() };
    return { jobId, attempt, outcome: 'FAILED', error };
  }

  test(`of a concurrency key never two run, and each gets its turn in order, ${ROUNDS} times`, async () => {
    const random = seededRandom();
    const { all, states } = await processes();
    for (let round = 0; round < ROUNDS; round++) {
      const concurrencyKey = `key-${round}`;
      const ids: string[] = [];
      const ran: string[] = [];
      let running = 0;
      const submits = (async () => {
        for (let i = 0; i < 3; i++) {
          const p = all[Math.floor(random() * ENGINES)] as Process;
          const requests = Array.from({ length: 2 }, () => ({ task: 'echo', concurrencyKey }));
          ids.push(...(await p.engine.jobs.submitMany(me, requests)).map((s) => s.jobId));
        }
      })();
      const isDone = async () => {
        const now = await states(ids);
        return ids.length === 6 && [...now.values()].every((s) => ['COMPLETED', 'FAILED', 'CANCELED'].includes(s));
      };
      const work = all.map(async (p) => {
        while (!(await isDone())) {
          for (const job of await claim(p, 3)) {
            expect(++running).toBe(1);
            ran.push(job.id);
            // Time for another to claim what it must not.
            await states([job.id]);
            // Taken from the count before the end is told: the next may start in the moment of the commit.
            running--;
            await p.engine.execution.settle(endOf(job, random() < 0.3));
          }
          if (random() < 0.1 && ids.length > 0) {
            const victim = ids[Math.floor(random() * ids.length)] as string;
            await p.engine.jobs.cancel(me, victim).catch(() => {});
          }
        }
      });
      await Promise.all([submits, ...work]);
      expect(ran).toEqual([...ran].sort((a, b) => ids.indexOf(a) - ids.indexOf(b)));
      expect(new Set(ran).size).toBe(ran.length);
    }
  });

  test(`a dependant that is submitted while its upstream jobs end is queued once, ${ROUNDS} times`, async () => {
    const random = seededRandom();
    const { all, states } = await processes();
    const [a, b] = all as [Process, Process];
    for (let round = 0; round < ROUNDS; round++) {
      const upstreams = await a.engine.jobs.submitMany(me, [{ task: 'echo' }, { task: 'echo' }, { task: 'echo' }]);
      const claimed = await claim(a, 10);
      const dependsOn = upstreams.map(({ jobId }) => ({ jobId, policy: 'CONTINUE' as const }));
      const [{ jobId }] = await Promise.all([
        b.engine.jobs.submit(me, { task: 'echo', dependsOn }),
        ...claimed.map((job, i) => (all[i % ENGINES] as Process).engine.execution.settle(endOf(job, random() < 0.5))),
      ]);
      await eventually(async () => expect((await states([jobId])).get(jobId)).toBe('QUEUED'), { timeoutMs: 2_000 });
      const [job] = await claim(b, 10);
      expect(job?.id).toBe(jobId);
      await b.engine.execution.settle(endOf(job as ClaimedJob, false));
    }
  });

  test(`a retry beside the end of the follow-up leaves no dependant behind, ${ROUNDS} times`, async () => {
    const random = seededRandom();
    const { all, states } = await processes();
    const [a, b] = all as [Process, Process];
    for (let round = 0; round < ROUNDS; round++) {
      const { jobId: upstream } = await a.engine.jobs.submit(me, { task: 'echo' });
      const { jobId } = await a.engine.jobs.submit(me, { task: 'echo', dependsOn: [{ jobId: upstream }] });
      const [first] = await claim(a, 10);
      await a.engine.execution.settle(endOf(first as ClaimedJob, true));
      // The follow-up of the failure is under way; whichever comes first, the dependant must go in the end.
      if (random() < 0.5) await new Promise((resolve) => setImmediate(resolve));
      await b.engine.jobs.retry(me, upstream);
      const again = await eventually(async () => {
        const [job] = await claim(b, 10);
        if (!job) throw new Error('the upstream job is not in line');
        return job;
      });
      expect(again.id).toBe(upstream);
      await b.engine.execution.settle(endOf(again, false));
      const last = await eventually(async () => {
        await a.engine.maintenance.followUp();
        const [job] = await claim(a, 10);
        if (!job) throw new Error(`the dependant is ${(await states([jobId])).get(jobId)}`);
        return job;
      });
      expect(last.id).toBe(jobId);
      await a.engine.execution.settle(endOf(last, false));
    }
  });

  test(`children are submitted once by callers that repeat the call at once, ${ROUNDS} times`, async () => {
    const { all, childCount } = await processes();
    const [a] = all as [Process];
    for (let round = 0; round < ROUNDS; round++) {
      await a.engine.jobs.submit(me, { task: 'echo' });
      const [parent] = await claim(a, 1);
      const { id: jobId, attempt, epoch } = parent as ClaimedJob;
      const jobs = [0, 1, 2].map(() => ({
        request: { task: 'echo', runAt: '2100-01-01T00:00:00Z' },
        definition: null,
      }));
      const from = { jobId, attempt, epoch, key: 'c', children: 'CONTINUE' as const, jobs };
      const answers = await Promise.all(all.map((p) => p.engine.execution.submitFromHandler(from)));
      expect(new Set(answers.map((ids) => ids.join())).size).toBe(1);
      await a.engine.execution.settle(endOf(parent as ClaimedJob, false));
    }
    expect(await childCount()).toBe(3 * ROUNDS);
  });

  test('a dependant ends with its upstream job, also when that fails again before its retry was told', async () => {
    const url = await createPostgresDatabase();
    const databases = await Promise.all([1, 2].map(() => openDatabase({ url })));
    onTestFinished(async () => void (await Promise.all(databases.map((d) => d.close()))));
    const [first, second] = databases as unknown as [Database, Database];
    const stall = deferred();
    const stalled = deferred();
    const slow = stalledBehind(first, (text, rows) => {
      if (!text.includes('waymark.followups f') || !rows.some((row) => row.kind === 'REVIVED')) return;
      stalled.resolve();
      return stall.promise;
    });
    const engineOf = (database: Database) =>
      createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
    const [a, b] = [engineOf(slow), engineOf(second)];
    await b.execution.registerTasks([taskNamed('echo', { maxAttempts: 1 })]);
    const process = { engine: b, worker: await insertWorker(second.submit) };
    const fail = async () => {
      for (const job of await claim(process, 1)) await b.execution.settle(endOf(job, true));
    };
    const stateOf = async (id: string) =>
      (await second.read.query<{ state: string }>('select state from waymark.job_states where id = $1::uuid', [id]))[0]
        ?.state;
    const { jobId: upstream } = await b.jobs.submit(me, { task: 'echo' });
    const { jobId: dependant } = await b.jobs.submit(me, { task: 'echo', dependsOn: [{ jobId: upstream }] });
    await fail();
    await eventually(async () => expect(await stateOf(dependant)).toBe('CANCELED'));
    const retried = a.jobs.retry(me, upstream);
    await within(10_000, stalled.promise, 'the stall');
    await fail();
    await eventually(async () => {
      const left = await second.read.query(`select 1 from waymark.followups where kind = 'ENDED'`);
      expect(left).toEqual([]);
    });
    stall.resolve();
    await retried;
    await eventually(async () => {
      expect(await second.read.query('select 1 from waymark.followups')).toEqual([]);
      expect(await stateOf(dependant)).toBe('CANCELED');
    });
    expect(await stateOf(upstream)).toBe('FAILED');
  });
});

/** The same database, whose statements of the worker's connections may be held up when they have been answered. */
function stalledBehind(
  database: Database,
  stall: (text: string, rows: readonly Record<string, unknown>[]) => Promise<void> | undefined,
): Database {
  const held = (tx: Tx): Tx => ({
    ...tx,
    query: async <T>(text: string, params?: readonly SqlParam[]) => {
      const rows = await tx.query<T>(text, params);
      await stall(text, rows as Record<string, unknown>[]);
      return rows;
    },
  });
  const transaction: Database['work']['transaction'] = (work, options) =>
    database.work.transaction((tx) => work(held(tx)), options);
  return Object.assign(Object.create(database) as Database, {
    work: Object.assign(Object.create(database.work) as Database['work'], { transaction }),
  });
}
