import { newUuid } from '../../src/core/ids.ts';
import { DEFAULT_TENANT, LOCAL_ACTOR } from '../../src/core/job.ts';
import { isTerminal, type JobState } from '../../src/core/state.ts';
import type { TaskDefinition } from '../../src/core/task.ts';
import type { Executor } from '../../src/db/types.ts';
import type { Caller, EngineOptions } from '../../src/engine/types.ts';

/** The caller of tests that do not care who calls. */
export const me: Caller = { tenant: DEFAULT_TENANT, actor: LOCAL_ACTOR };

/** Engine settings that make leases short and nothing be pruned by chance. */
export function engineOptions(over: Partial<EngineOptions> = {}): EngineOptions {
  const day = 86_400_000;
  return {
    leaseMs: 3_000,
    sweepMs: 1_000,
    priorityStepMs: 600_000,
    retainMs: { completed: day, failed: day, canceled: day, keys: day },
    maxBytes: { input: 1_000_000, result: 1_000_000, checkpoint: 1_000_000 },
    ...over,
  };
}

/** A task definition as a worker registers it. */
export function taskNamed(name: string, over: Partial<TaskDefinition> = {}): TaskDefinition {
  return {
    name,
    description: null,
    stages: [],
    queue: 'default',
    priority: 0,
    inputSchema: null,
    outputSchema: null,
    maxAttempts: 3,
    backoff: { type: 'fixed', delayMs: 0, factor: 1, maxMs: 1_000, jitter: 0 },
    timeoutMs: null,
    stallTimeoutMs: null,
    ...over,
  };
}

/** A worker's row with a lease that lasts; returns its id. */
export async function insertWorker(db: Executor, over: { leaseMs?: number; tasks?: string[] } = {}): Promise<string> {
  const id = newUuid();
  await db.query(
    `insert into waymark.workers (id, host, pid, queues, tasks, task_digests, slots, state, started_at, heartbeat_at, lease_until)
     select $1::uuid, 'test', 1, '{}', $2::text[], '{}', 10, 'ACTIVE', t.now, t.now, t.now + $3::bigint * interval '1 ms'
     from (select clock_timestamp() as now) t`,
    [id, `{${(over.tasks ?? []).join(',')}}`, over.leaseMs ?? 3_600_000],
  );
  return id;
}

/**
 * Writes a job straight into a state, with rows that satisfy every constraint, for tests that start from there. A
 * RUNNING job has attempt 1 of `workerId`.
 */
export async function insertJob(
  db: Executor,
  job: { state: JobState; task?: string; workerId?: string; maxAttempts?: number; canceling?: boolean },
): Promise<string> {
  const id = newUuid();
  const running = job.state === 'RUNNING';
  await db.query(
    `insert into waymark.jobs (id, tenant, task, queue, priority, tags, input_digest, submitted_by, backoff, created_at)
     values ($1::uuid, $2, $3, 'default', 0, '{}', '-', 'user:local',
             '{"type":"fixed","delayMs":0,"factor":1,"maxMs":1000,"jitter":0}', clock_timestamp())`,
    [id, DEFAULT_TENANT, job.task ?? 'echo'],
  );
  await db.query(
    `insert into waymark.job_states (id, tenant, task, queue, state, max_attempts, rank, run_at, changed_at, finished_at,
                                     worker_id, attempt, started_at, attempt_started_at, last_advance_at, last_seq, version,
                                     cancel_requested_at, cancel_requested_by, waiting_kind)
     select $1::uuid, $2, $3, 'default', $4, $5::int, t.now, t.now - interval '1 second', t.now,
            case when $6::boolean then t.now end, $7::uuid, case when $8::boolean then 1 else 0 end,
            case when $8::boolean then t.now end, case when $8::boolean then t.now end,
            case when $8::boolean then t.now end,
            1 + $8::boolean::int, 1 + $8::boolean::int,
            case when $9::boolean then t.now end, case when $9::boolean then 'user:local' end,
            case when $4 = 'DEFERRED' then 'DEPENDENCIES' end
     from (select clock_timestamp() as now) t`,
    [
      id,
      DEFAULT_TENANT,
      job.task ?? 'echo',
      job.state,
      job.maxAttempts ?? 3,
      isTerminal(job.state),
      running ? (job.workerId ?? newUuid()) : null,
      running,
      job.canceling ?? false,
    ],
  );
  await db.query(
    `insert into waymark.events (job_id, seq, at, type, run, state)
     select $1::uuid, n, clock_timestamp(), case n when 1 then 'JobSubmitted' else 'AttemptStarted' end, 1, $2
     from generate_series(1, $3::int) n`,
    [id, job.state, running ? 2 : 1],
  );
  return id;
}
