import { setImmediate } from 'node:timers/promises';
import { newUuid } from '../../src/core/ids.ts';
import type { TaskDefinition } from '../../src/core/task.ts';
import type { Database, Executor, Tx } from '../../src/db/types.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { engineOptions, taskNamed } from '../support/factory.ts';
import { faultyDatabase } from '../support/faulty-store.ts';
import { LEASE_HOURS, PRIORITY_STEP_HOURS, RETAIN_HOURS } from './model.ts';
import { snapshotOf } from './snapshot.ts';

export const HOUR_MS = 3_600_000;
export const LEASE_MS = LEASE_HOURS * HOUR_MS;

/** The model's tasks, as workers register them. */
export const DEFINITIONS: readonly TaskDefinition[] = [
  taskNamed('alpha', {
    maxAttempts: 2,
    backoff: { type: 'fixed', delayMs: HOUR_MS, factor: 1, maxMs: HOUR_MS, jitter: 0 },
  }),
  taskNamed('beta', {
    maxAttempts: 3,
    stallTimeoutMs: 2 * HOUR_MS,
    backoff: { type: 'exponential', delayMs: HOUR_MS, factor: 2, maxMs: 3 * HOUR_MS, jitter: 0 },
  }),
];

/** An engine of its own over a database that one simulation after the other uses. */
export interface Bench {
  readonly engine: Engine;
  /** Neither mutated nor faulty. */
  readonly db: Executor;
  /** Empties the tables and opens the leases of two workers, whose ids it gives. */
  reset(): Promise<string[]>;
  /** Lets time pass: every moment that decides something moves into the past. */
  advance(hours: number): Promise<void>;
  /** No two commands happen at once in the model, and the clock of the embedded database counts milliseconds. */
  nextMoment(): Promise<void>;
  /** The answer of the n-th statement or transaction from now (0: the next) is lost, though it is done. */
  loseAnswer(n: number): void;
  /** Everything arrives again. */
  reliable(): void;
}

/** @param rewrite makes a wrong engine: what is to be run in the place of a statement */
export async function openBench(database: Database, rewrite?: (sql: string) => string): Promise<Bench> {
  let lose = -1;
  let moment = 0;
  const faulty = faultyDatabase(rewrite ? rewritten(database, rewrite) : database, () =>
    lose-- === 0 ? 'lost answer' : null,
  );
  const day = RETAIN_HOURS;
  const engine = createEngine({
    database: faulty,
    channel: createMemoryChannel(),
    options: engineOptions({
      // Rescue waits for one lease of contact in real time; the leases of the workers are their own.
      leaseMs: 0,
      sweepMs: 0,
      priorityStepMs: PRIORITY_STEP_HOURS * HOUR_MS,
      retainMs: {
        completed: day.COMPLETED * HOUR_MS,
        failed: day.FAILED * HOUR_MS,
        canceled: day.CANCELED * HOUR_MS,
        keys: day.keys * HOUR_MS,
      },
    }),
  });
  await engine.execution.registerWorker({ ...someWorker(newUuid()), leaseMs: 0 });
  // As Postgres has it (decision 9): to plan a transition anew takes longer than to carry it out.
  await database.work.query('set plan_cache_mode = force_generic_plan');
  await database.work.query('create table if not exists public.sim_rows (at serial, row text not null)');
  // The first time a statement is prepared before it is run, and others could come between.
  await snapshotOf(database.work);
  return {
    engine,
    db: database.work,
    async reset() {
      lose = -1;
      const ids = [newUuid(), newUuid()];
      await database.work.query(RESET, [`{${ids.join(',')}}`, LEASE_MS]);
      return ids;
    },
    async advance(hours) {
      await database.work.query(ADVANCE, [hours]);
    },
    async nextMoment() {
      while (Date.now() === moment) await setImmediate();
      moment = Date.now();
    },
    loseAnswer(n) {
      lose = n;
    },
    reliable() {
      lose = -1;
    },
  };
}

export function someWorker(id: string) {
  return { id, host: 'sim', pid: 1, queues: null, tasks: DEFINITIONS, slots: 10, leaseMs: LEASE_MS };
}

const TABLES = [
  ...['jobs', 'job_states', 'payloads', 'ended_attempts', 'checkpoints', 'events', 'workers', 'idempotency_keys'],
  ...['count_deltas', 'counts', 'minute_stats'],
].map((table) => `waymark.${table}`);

// One statement: a simulation is so short that emptying the tables one by one would be a good part of it.
const RESET = `
with ${[...TABLES, 'public.sim_rows'].map((table, i) => `d${i} as (delete from ${table})`).join(',\n')},
t as materialized (select clock_timestamp() as now)
insert into waymark.workers (id, host, pid, queues, tasks, task_digests, slots, state, started_at, heartbeat_at, lease_until)
select x.id, 'sim', 1, '{}', '{}', '{}', 10, 'ACTIVE', t.now, t.now, t.now + $2::bigint * interval '1 millisecond'
from unnest($1::uuid[]) as x(id), t`;

const ADVANCE = `
with t as materialized (select $1::int * interval '1 hour' as passed),
w as (
  update waymark.workers w set lease_until = w.lease_until - t.passed, heartbeat_at = w.heartbeat_at - t.passed from t
),
k as (
  update waymark.idempotency_keys k set expires_at = k.expires_at - t.passed, created_at = k.created_at - t.passed from t
)
update waymark.job_states s
set rank = s.rank - t.passed, run_at = s.run_at - t.passed, finished_at = s.finished_at - t.passed,
    pruned_at = s.pruned_at - t.passed, last_advance_at = s.last_advance_at - t.passed
from t`;

function rewritten(database: Database, rewrite: (sql: string) => string): Database {
  const db = database.work;
  const handle: Database['work'] = {
    kind: 'db',
    user: db.user,
    query: (text, params) => db.query(rewrite(text), params),
    transaction: (fn, options) => {
      const inside = (tx: Tx): Tx => ({
        kind: 'tx',
        user: tx.user,
        query: (text, params) => tx.query(rewrite(text), params),
      });
      return db.transaction((tx) => fn(inside(tx)), options);
    },
  };
  return { ...database, submit: handle, work: handle, beat: handle, read: handle, maintenance: handle };
}
