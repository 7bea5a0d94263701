import type { Backoff } from '../../core/backoff.ts';
import { pgTextArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';

const REGISTER = `
insert into waymark.workers (id, host, pid, queues, tasks, task_digests, slots, state, started_at, heartbeat_at, lease_until)
select $1::uuid, $2, $3::int, $4::text[], $5::text[], $6::text::json, $7::int, 'ACTIVE', t.now, t.now,
       t.now + $8::bigint * interval '1 millisecond'
from (select clock_timestamp() as now) t
on conflict (id) do nothing`;

/** Opens a worker's lease. Its id is new at every boot, so that a lease is never taken up again. */
export async function registerWorker(
  db: Executor,
  w: {
    id: string;
    host: string;
    pid: number;
    queues: readonly string[];
    tasks: readonly string[];
    taskDigests: Record<string, string>;
    slots: number;
    leaseMs: number;
  },
): Promise<void> {
  await db.query(REGISTER, [
    w.id,
    w.host,
    w.pid,
    pgTextArray(w.queues),
    pgTextArray(w.tasks),
    JSON.stringify(w.taskDigests),
    w.slots,
    w.leaseMs,
  ]);
}

export interface BeatRow {
  jobId: string | null;
  attempt: number | null;
  cancelRequested: boolean;
  cancelRequestedBy: string | null;
  cancelReason: string | null;
}

// Renews the worker's own row and only reads the jobs: a beat that locked job rows would wait for every open user
// transaction, and deadlock with settles (E7, E8). No row at all: the worker is LOST, which is for ever.
const BEAT = `
with w as (
  update waymark.workers w
  set heartbeat_at = t.now, lease_until = t.now + $2::bigint * interval '1 millisecond', busy = $3::int,
      state = case when $6::boolean then 'LOST' when $4::boolean then 'DRAINING' else w.state end,
      blocked_since = case when $5::boolean then coalesce(w.blocked_since, t.now) end, hung = $6::boolean
  from (select clock_timestamp() as now) t
  where w.id = $1::uuid and w.state <> 'LOST'
  returning w.id
)
select s.id as "jobId", s.attempt, s.cancel_requested_at is not null as "cancelRequested",
       s.cancel_requested_by as "cancelRequestedBy", s.cancel_reason as "cancelReason"
from w left join waymark.job_states s on s.worker_id = $1::uuid and s.state = 'RUNNING'`;

/** Renews a lease and reads what its worker owns: one row a job, one row of nulls when it owns none, none when LOST. */
export function beat(
  db: Executor,
  id: string,
  status: { leaseMs: number; busy: number; draining: boolean; blocked: boolean; hung: boolean },
): Promise<BeatRow[]> {
  return db.query<BeatRow>(BEAT, [id, status.leaseMs, status.busy, status.draining, status.blocked, status.hung]);
}

const MARK_LOST = `
with l as materialized (
  select w.id from waymark.workers w
  where w.state <> 'LOST' and w.lease_until < clock_timestamp()
  order by w.id limit 100
  for update skip locked
)
update waymark.workers w set state = 'LOST', busy = 0 from l where w.id = l.id returning w.id`;

/** Workers past their lease become LOST, for ever. Returns their ids. */
export async function markLost(db: Executor): Promise<string[]> {
  return (await db.query<{ id: string }>(MARK_LOST)).map((r) => r.id);
}

/** Every worker becomes LOST: only for the sole owner of an embedded database, before its own worker starts. */
export async function markAllLost(db: Executor): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `update waymark.workers set state = 'LOST', busy = 0 where state <> 'LOST' returning id`,
  );
  return rows.map((r) => r.id);
}

/** A worker that left in good order; its row goes when nothing refers to it as running any more. */
export async function markStopped(db: Executor, id: string): Promise<void> {
  await db.query(`update waymark.workers set state = 'LOST', busy = 0 where id = $1::uuid`, [id]);
}

export interface RescueRow {
  jobId: string;
  attempt: number;
  failures: number;
  stalls: number;
  maxAttempts: number;
  workerId: string;
  /** The worker gave its lease up since its event loop was blocked for too long. */
  hung: boolean;
  backoff: Backoff;
}

const ABANDONED = `
select s.id as "jobId", s.attempt, s.failures, s.stalls, s.max_attempts as "maxAttempts", s.worker_id as "workerId", j.backoff,
       coalesce(w.hung, false) as hung
from waymark.job_states s join waymark.jobs j on ${probes('j.id', 's.id')}
left join waymark.workers w on w.id = s.worker_id
where s.state = 'RUNNING' and (w.id is null or w.state = 'LOST')
order by s.id limit $1::int`;

/** Running attempts whose worker is LOST or gone. */
export function abandonedAttempts(db: Executor, limit: number): Promise<RescueRow[]> {
  return db.query<RescueRow>(ABANDONED, [limit]);
}

const NOT_ADVANCING = `
select s.id as "jobId", s.attempt, s.failures, s.stalls, s.max_attempts as "maxAttempts", s.worker_id as "workerId", j.backoff,
       false as hung
from waymark.job_states s join waymark.jobs j on ${probes('j.id', 's.id')}
where s.state = 'RUNNING' and j.stall_timeout_ms is not null
  and s.last_advance_at + j.stall_timeout_ms * interval '1 millisecond' < clock_timestamp()
order by s.id limit $1::int`;

/** Running attempts without progress or checkpoint for longer than their task allows. */
export function stuckAttempts(db: Executor, limit: number): Promise<RescueRow[]> {
  return db.query<RescueRow>(NOT_ADVANCING, [limit]);
}

const FORGET = `
delete from waymark.workers w
where w.state = 'LOST' and w.heartbeat_at < clock_timestamp() - $1::bigint * interval '1 millisecond'
  and not exists (select 1 from waymark.job_states s where s.worker_id = w.id and s.state = 'RUNNING')`;

/** Drops the rows of workers that were lost longer ago than `olderThanMs`. Attempts keep their ids. */
export async function forgetWorkers(db: Executor, olderThanMs: number): Promise<void> {
  await db.query(FORGET, [olderThanMs]);
}

const UP_SINCE = `
select (extract(epoch from clock_timestamp() - pg_postmaster_start_time()) * 1000)::float8 as ms`;

/** Milliseconds since Postgres started. */
export async function serverUptime(db: Executor): Promise<number> {
  const [row] = await db.query<{ ms: number }>(UP_SINCE);
  return row?.ms ?? 0;
}
