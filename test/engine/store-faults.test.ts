import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { InvalidTransition, Unavailable } from '../../src/core/errors.ts';
import { TERMINAL_EVENTS } from '../../src/core/event.ts';
import { publicId } from '../../src/core/ids.ts';
import { silentLogger } from '../../src/core/log.ts';
import { BUDGET_OUTCOMES, type JobState } from '../../src/core/state.ts';
import type { AnyTask } from '../../src/core/task.ts';
import type { Database, Executor, UserTx } from '../../src/db/types.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { createMaintenanceLoop } from '../../src/worker/maintenance-loop.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { engineOptions, me, taskNamed } from '../support/factory.ts';
import { eachFault, FAULTS, type Fault, faulty, faultyDatabase } from '../support/faulty-store.ts';
import { seededRandom } from '../support/random.ts';

const JOBS = 300;
const LANES = 20;
const RATE = 0.05;
/** By far longer than any beat takes, so that what ends an attempt is a fault and not a busy machine. */
const LEASE_MS = 10_000;
const BATCHED = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const soon = { type: 'fixed', delay: 0, jitter: 0 } as const;
const insert = (tx: UserTx, job: string, items: number[]) =>
  tx.execute(sql`insert into public.done (job, item) select ${job}, n from unnest(${`{${items}}`}::int[]) n`);

type LedgerLine = { job: string; attempt: number; step: string };

/** Handlers that write down, outside the store, what they really did. */
function tasksWith(ledger: LedgerLine[]) {
  const done = (ctx: { job: { id: string; attempt: number } }, step: string) =>
    void ledger.push({ job: ctx.job.id, attempt: ctx.job.attempt, step });
  const options = { maxAttempts: 20, backoff: soon };
  return {
    echo: defineTask({ name: 'echo', ...options, run: (_ctx, input) => input as number }),
    steps: defineTask({
      name: 'steps',
      ...options,
      async run(ctx) {
        for (const step of ['a', 'b', 'c']) {
          await ctx.step(step, () => done(ctx, step));
          done(ctx, `${step} saved`);
          if (step === 'b' && ctx.job.attempt === 1) throw new Error('between two steps');
        }
      },
    }),
    batches: defineTask({
      name: 'batches',
      ...options,
      async run(ctx) {
        const source = (cursor: number) => BATCHED.filter((n) => n > cursor).map((n) => ({ value: n, cursor: n }));
        return ctx.batches('rows', { start: 0, source, size: 4 }, async (values, { tx, index }) => {
          await insert(tx, ctx.job.id, values);
          if (index === 1 && ctx.job.attempt === 1) throw new Error('in the middle of a transaction');
        });
      },
    }),
    once: defineTask({
      name: 'once',
      ...options,
      async run(ctx) {
        await ctx.transaction('row', (tx) => insert(tx, ctx.job.id, [0]).then(() => null));
      },
    }),
    flaky: defineTask({
      name: 'flaky',
      maxAttempts: 3,
      backoff: soon,
      run(ctx, failures) {
        done(ctx, 'run');
        if (ledger.filter((l) => l.job === ctx.job.id).length <= (failures as number)) throw new Error('not yet');
      },
    }),
    slow: defineTask({
      name: 'slow',
      ...options,
      async run(ctx) {
        done(ctx, 'run');
        await pause(200, undefined, { signal: ctx.signal });
      },
    }),
  };
}

/** Asks until there is an answer, as a caller with a key may. */
async function untilAnswered<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
  }
}

/** Two workers and the maintenance of one process. */
function startWork(database: Database, tasks: readonly AnyTask[]): Engine {
  const channel = createMemoryChannel();
  const log = silentLogger;
  const engine = createEngine({ database, channel, options: engineOptions({ leaseMs: LEASE_MS, sweepMs: 500 }) });
  const { execution, maintenance } = engine;
  const maxBytes = { result: 1_000_000, checkpoint: 1_000_000 };
  const times = { heartbeatMs: 250, leaseMs: LEASE_MS, pollMs: 100, graceMs: 5_000, maxBlockMs: 60_000 };
  const parts = { execution, channel, db: database.work.user, tasks, concurrency: 10, log };
  const workers = [1, 2].map(() => createWorker({ ...parts, options: { ...times, maxBytes } }));
  const loop = createMaintenanceLoop({ maintenance, log, sweepMs: 500, pollMs: 100 });
  for (const started of [...workers, loop]) void started.start();
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.stop({ graceMs: 0 })));
    await loop.stop();
    await channel.close();
  });
  return engine;
}

interface Outcome {
  id: string;
  task: string;
  key: string;
  state: JobState;
  attempt: number;
  failures: number;
  maxAttempts: number;
  lastSeq: number;
  input: unknown;
  result: unknown;
  attempts: { number: number; outcome: string }[];
  events: { seq: number; type: string }[];
  steps: { key: string; attempt: number }[];
  rows: number[];
}

const OUTCOMES = `
select s.id, s.task, j.idempotency_key as key, s.state, s.attempt, s.failures, s.max_attempts as "maxAttempts",
  s.last_seq as "lastSeq",
  (select p.data from waymark.payloads p where p.job_id = s.id and p.kind = 'input') as input,
  (select p.data from waymark.payloads p where p.job_id = s.id and p.kind = 'result') as result,
  coalesce((select json_agg(json_build_object('number', a.number, 'outcome', a.outcome) order by a.number)
    from waymark.attempts a where a.job_id = s.id), '[]') as attempts,
  coalesce((select json_agg(json_build_object('seq', e.seq, 'type', e.type) order by e.seq)
    from waymark.events e where e.job_id = s.id), '[]') as events,
  coalesce((select json_agg(json_build_object('key', c.key, 'attempt', c.attempt) order by c.sequence)
    from waymark.checkpoints c where c.job_id = s.id), '[]') as steps
from waymark.job_states s join waymark.jobs j on j.id = s.id`;

async function outcomes(db: Executor): Promise<Outcome[]> {
  const rows = await db.query<{ job: string; item: number }>('select job, item from public.done order by item');
  const jobs = await db.query<Omit<Outcome, 'rows'>>(OUTCOMES);
  return jobs.map((job) => ({
    ...job,
    rows: rows.filter((row) => row.job === publicId('Job', job.id)).map((row) => row.item),
  }));
}

const random = seededRandom();
const stores = databases().map((store) => faulty(store, eachFault(RATE), random));

describe.each(stores)(`a store on $name with ${100 * RATE} % of each fault`, (store) => {
  test(`${JOBS} jobs: nothing acknowledged is lost, nothing finished is done again, every count is right`, async () => {
    const { reliable, counts, ...database } = await store.open();
    await reliable.submit.query('create table public.done (job text not null, item int not null)');
    const ledger: LedgerLine[] = [];
    const tasks = tasksWith(ledger);
    const kinds = Object.values(tasks);
    const engine = startWork(database, kinds);

    const acknowledged = new Map<string, Set<string>>();
    const canceledAtOnce: string[] = [];
    const submitOne = async (i: number): Promise<void> => {
      const task = kinds[i % kinds.length] as AnyTask;
      const key = `job-${i}`;
      const input = Math.floor(random() * 5);
      const submit = () =>
        engine.jobs.submit(me, { task: task.name, input, idempotencyKey: key }, { definition: task.definition });
      // Some press twice.
      const callers = i % 5 === 0 ? 2 : 1;
      const answers = await Promise.all(Array.from({ length: callers }, () => untilAnswered(submit)));
      acknowledged.set(key, new Set(answers.map((a) => a.jobId)));
      if (task !== tasks.slow || random() < 0.5) return;
      await pause(random() * 300);
      const canceled = await untilAnswered(() => engine.jobs.cancel(me, answers[0]?.jobId ?? '')).catch((error) => {
        // It was sooner.
        if (error instanceof InvalidTransition) return null;
        throw error;
      });
      if (canceled?.state === 'CANCELED') canceledAtOnce.push(canceled.id);
    };
    // One behind the other in each lane: all at once they would share a few statements.
    const lane = async (first: number) => {
      for (let i = first; i < JOBS; i += LANES) await submitOne(i);
    };
    await Promise.all(Array.from({ length: LANES }, (_, first) => lane(first)));

    const unfinished = () =>
      reliable.submit.query('select id, state from waymark.job_states where finished_at is null');
    await eventually(async () => expect(await unfinished()).toEqual([]), { timeoutMs: 90_000, intervalMs: 200 });
    const jobs = await outcomes(reliable.submit);

    console.info('faults:', counts, 'ends:', countBy(jobs.map((j) => `${j.task} ${j.state}`)));
    for (const fault of FAULTS) {
      expect(counts.submit[fault], `${fault} at a submit`).toBeGreaterThan(0);
      expect(counts.work[fault], `${fault} at a worker's call`).toBeGreaterThan(0);
    }
    expect(jobs.filter((j) => j.state === 'COMPLETED').length).toBeGreaterThan(JOBS * 0.7);

    expect(jobs.map((job) => job.key).sort(), 'one job for each key, and no other').toEqual(
      [...acknowledged.keys()].sort(),
    );
    for (const job of jobs) {
      expect([...(acknowledged.get(job.key) ?? [])], `all callers with key ${job.key} have the job`).toEqual([job.id]);
      expectWholeHistory(job);
      expectEachThingOnce(job, ledger);
    }
    const wereCanceled = jobs.filter((job) => canceledAtOnce.includes(job.id)).map((job) => job.state);
    expect(new Set([...wereCanceled, 'CANCELED']), 'what was canceled stays so').toEqual(new Set(['CANCELED']));
  }, 180_000);
});

/** I2, I3, I6 of promises.md. */
function expectWholeHistory(job: Outcome): void {
  const { events, attempts } = job;
  const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1);
  const history = {
    seqs: events.map((e) => e.seq),
    ends: events.filter((e) => (TERMINAL_EVENTS as readonly string[]).includes(e.type)),
    attempts: attempts.map((a) => a.number),
    open: attempts.filter((a) => a.outcome === null),
    failures: attempts.filter((a) => (BUDGET_OUTCOMES as readonly string[]).includes(a.outcome)).length,
    failed: job.failures === job.maxAttempts,
  };
  expect(history, JSON.stringify(job)).toEqual({
    seqs: upTo(job.lastSeq),
    ends: events.slice(-1),
    attempts: upTo(job.attempt),
    open: [],
    failures: job.failures,
    failed: job.state === 'FAILED',
  });
}

/** P4 and P5 of promises.md. */
function expectEachThingOnce(job: Outcome, ledger: readonly LedgerLine[]): void {
  const done = ledger.filter((line) => line.job === publicId('Job', job.id));
  const told = done.filter((line) => line.step.endsWith(' saved'));
  const saved = [...job.steps, ...told.map(({ step, attempt }) => ({ key: step.slice(0, 1), attempt }))];
  for (const { key, attempt } of saved) {
    const later = done.filter((line) => line.step === key && line.attempt > attempt);
    expect(later, `step ${key} was saved by attempt ${attempt} of ${JSON.stringify(job)}`).toEqual([]);
  }
  const runs = done.map((line) => `${line.step} ${line.attempt}`);
  expect(new Set(runs).size, `an attempt does a thing once: ${runs}`).toBe(runs.length);
  if (job.state !== 'COMPLETED') return;
  if (job.task === 'echo') expect(job.result).toEqual(job.input);
  if (job.task === 'steps') expect(job.steps.map((step) => step.key)).toEqual(['a', 'b', 'c']);
  if (job.task === 'batches')
    expect([job.rows, job.result]).toEqual([BATCHED, { processed: 10, succeeded: 10, failed: 0 }]);
  if (job.task === 'once') expect(job.rows).toEqual([0]);
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

describe.each(databases())('a submit without a key, on $name', ({ open }) => {
  const definition = taskNamed('echo');

  test.each<{ faults: Fault[]; answered: boolean; jobs: number }>([
    { faults: ['refused'], answered: true, jobs: 1 },
    { faults: ['timed out'], answered: true, jobs: 1 },
    { faults: ['lost answer'], answered: true, jobs: 1 },
    { faults: ['lost answer', 'lost answer'], answered: false, jobs: 1 },
    { faults: ['refused', 'lost answer'], answered: false, jobs: 1 },
    { faults: ['refused', 'timed out'], answered: false, jobs: 0 },
  ])('is repeated once under the same id: $faults', async ({ faults, answered, jobs }) => {
    const reliable = await open();
    let plan: (Fault | null)[] = [];
    const database = faultyDatabase(reliable, () => plan.shift() ?? null);
    const { jobs: verbs } = createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
    // The first submit makes the queue known.
    await verbs.submit(me, { task: 'echo' }, { definition });
    plan = [...faults];
    const ids = await verbs.submit(me, { task: 'echo', title: 'this one' }, { definition }).then(
      ({ jobId }) => [jobId],
      (error) => {
        expect(error).toBeInstanceOf(Unavailable);
        return [];
      },
    );
    const stored = await reliable.submit.query<{ id: string }>(`select id from waymark.jobs where title = 'this one'`);
    expect([plan, ids.length, stored.length]).toEqual([[], answered ? 1 : 0, jobs]);
    if (answered) expect(stored.map((row) => row.id)).toEqual(ids);
  });
});
