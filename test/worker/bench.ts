import { onTestFinished } from 'vitest';
import type { JobEvent } from '../../src/core/event.ts';
import { type AttemptRow, DEFAULT_TENANT, type JobRow } from '../../src/core/job.ts';
import type { Logger } from '../../src/core/log.ts';
import { isTerminal, type JobState } from '../../src/core/state.ts';
import type { AnyTask } from '../../src/core/task.ts';
import { checkpointsOf } from '../../src/db/reads/checkpoint-rows.ts';
import { eventsOfJobs } from '../../src/db/reads/events.ts';
import { jobById } from '../../src/db/reads/job-row.ts';
import type { ArtifactPlaces } from '../../src/engine/artifact-contents.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { ExecutionEngine, SubmitRequest } from '../../src/engine/types.ts';
import type { LiveChannel } from '../../src/events/channel.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { createMaintenanceLoop } from '../../src/worker/maintenance-loop.ts';
import { createWorker, type Worker, type WorkerOptions, type WorkerParts } from '../../src/worker/worker.ts';
import type { Store, TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { engineOptions, me } from '../support/factory.ts';

export interface BenchWorker extends Omit<Partial<WorkerParts>, 'options'> {
  options?: Partial<WorkerOptions>;
}

export interface LogLine {
  level: keyof Logger;
  data: Record<string, unknown>;
  message: string;
}

/** A store, the engine over it and workers that are stopped after the test. */
export interface Bench {
  database: TestDatabase;
  engine: Engine;
  channel: LiveChannel;
  /** What the workers logged. */
  lines: LogLine[];
  worker(tasks: readonly AnyTask[], over?: BenchWorker): Worker;
  /** A worker that has started. */
  work(tasks: readonly AnyTask[], over?: BenchWorker): Promise<Worker>;
  submit(task: AnyTask, input?: unknown, request?: Partial<SubmitRequest>): Promise<string>;
  job(id: string): Promise<JobRow>;
  /** Waits for a state, bounded. */
  reaches(id: string, ...states: JobState[]): Promise<JobRow>;
  /** Waits for the end of the run. */
  ends(id: string): Promise<JobRow>;
  attempts(id: string): Promise<Pick<AttemptRow, 'number' | 'outcome' | 'error' | 'workerId'>[]>;
  events(id: string): Promise<JobEvent[]>;
  result(id: string): Promise<unknown>;
  checkpoints(id: string): ReturnType<typeof checkpointsOf>;
}

/** Settings of trials: everything soon. */
const FAST: Omit<WorkerOptions, 'leaseMs'> = {
  heartbeatMs: 100,
  pollMs: 100,
  graceMs: 300,
  maxBlockMs: 60_000,
  maxBytes: { result: 1_000_000, checkpoint: 1_000_000 },
};

/** For tests about leases. Not shorter: on a busy machine a process may get no time for a second. */
export const SHORT_LEASE = 2_000;

export interface BenchOptions {
  /** What the workers get in the place of the engine. */
  wrap?: (execution: ExecutionEngine) => ExecutionEngine;
  /** Default: so long that no lease ends by accident. */
  leaseMs?: number;
  /** When the workers are stopped. Default: after the test. */
  onFinished?: (stop: () => Promise<void>) => void;
  /** Where contents of artifacts are kept. Default: in the database. */
  artifacts?: ArtifactPlaces;
}

export async function bench(
  store: Store,
  { wrap = (e) => e, leaseMs = 60_000, onFinished = onTestFinished, artifacts }: BenchOptions = {},
): Promise<Bench> {
  const database = await store.open();
  const channel = createMemoryChannel();
  const engine = createEngine({ database, channel, options: engineOptions({ leaseMs, sweepMs: 200 }), artifacts });
  const execution = wrap(engine.execution);
  const lines: LogLine[] = [];
  const log = recorder(lines);
  const maintenance = createMaintenanceLoop({ maintenance: engine.maintenance, log, sweepMs: 200, pollMs: 100 });
  maintenance.start();
  const workers: Worker[] = [];
  onFinished(async () => {
    await Promise.all(workers.map((worker) => worker.stop({ graceMs: 0 })));
    await maintenance.stop();
    await channel.close();
  });

  const worker = (tasks: readonly AnyTask[], { options, ...over }: BenchWorker = {}): Worker => {
    const made = createWorker({
      execution,
      channel,
      db: database.work.user,
      tasks,
      concurrency: 10,
      log,
      options: { ...FAST, leaseMs, ...options },
      ...over,
    });
    workers.push(made);
    return made;
  };
  const db = database.read;
  const job = async (id: string): Promise<JobRow> => {
    const row = await jobById(db, DEFAULT_TENANT, id);
    if (!row) throw new Error(`no job ${id}`);
    return row;
  };
  const until = (id: string, ok: (row: JobRow) => boolean, what: string): Promise<JobRow> =>
    eventually(
      async () => {
        const row = await job(id);
        if (!ok(row))
          throw new Error(`job is ${row.state} (attempt ${row.attempt}), not ${what}: ${JSON.stringify(row.error)}`);
        return row;
      },
      { timeoutMs: 25_000, intervalMs: 10 },
    );

  return {
    database,
    engine,
    channel,
    lines,
    worker,
    async work(tasks, over) {
      const made = worker(tasks, over);
      await made.start();
      return made;
    },
    async submit(task, input, request = {}) {
      const { definition } = task;
      return (await engine.jobs.submit(me, { task: task.name, input, ...request }, { definition })).jobId;
    },
    job,
    reaches: (id, ...states) => until(id, (row) => states.includes(row.state), states.join(' or ')),
    ends: (id) => until(id, (row) => isTerminal(row.state), 'finished'),
    attempts: (id) =>
      db.query(
        `select number, outcome, error, worker_id as "workerId" from waymark.attempts where job_id = $1::uuid order by number`,
        [id],
      ),
    events: (id) => eventsOfJobs(db, DEFAULT_TENANT, [id], { after: 0, limit: 10_000 }),
    async result(id) {
      const [row] = await db.query<{ data: unknown }>(
        `select data from waymark.payloads where job_id = $1::uuid and kind = 'result'`,
        [id],
      );
      return row?.data;
    },
    checkpoints: async (id) => checkpointsOf(db, id, (await job(id)).epoch),
  };
}

function recorder(lines: LogLine[]): Logger {
  const to = (level: keyof Logger) => (data: object, message: string) =>
    void lines.push({ level, data: data as Record<string, unknown>, message });
  return { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') };
}
