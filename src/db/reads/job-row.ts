import type { JobRow } from '../../core/job.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

/** The select list of a JobRow over `j` (jobs) and `s` (job_states). */
export const JOB_COLUMNS = `
j.id, j.tenant, j.task, j.title, j.queue, j.priority, j.tags, j.input_digest as "inputDigest",
j.idempotency_key as "idempotencyKey", j.graph_id as "graphId", j.node_name as "nodeName", j.parent_id as "parentId",
j.schedule_id as "scheduleId", j.submitted_by as "submittedBy", j.concurrency_key as "concurrencyKey",
s.max_attempts as "maxAttempts", j.timeout_ms as "timeoutMs", j.stall_timeout_ms as "stallTimeoutMs",
j.created_at as "createdAt", s.pruned_at as "prunedAt",
s.state, s.run, s.epoch, s.attempt, s.failures, s.version, s.last_seq as "lastSeq", s.rank, s.run_at as "runAt",
s.queued_at as "queuedAt", s.started_at as "startedAt", s.changed_at as "changedAt", s.finished_at as "finishedAt",
s.last_advance_at as "lastAdvanceAt", s.worker_id as "workerId", s.progress, s.error,
s.result_digest as "resultDigest", s.cancel_requested_at as "cancelRequestedAt",
s.cancel_requested_by as "cancelRequestedBy", s.cancel_reason as "cancelReason",
s.cancel_delivered_at as "cancelDeliveredAt", s.cancel_stopped_at as "cancelStoppedAt",
s.cancel_forced as "cancelForced", s.waiting_kind as "waitingKind"`;

// One primary-key probe per id: with `tenant` in reach a young table's planner scans a whole list index instead.
const BY_IDS = `
select ${JOB_COLUMNS}
from unnest($1::uuid[]) as i(id)
cross join lateral (select * from waymark.jobs x where x.id = i.id offset 0) j
cross join lateral (select * from waymark.job_states x where x.id = i.id offset 0) s
where j.tenant = $2`;

/** The jobs of these ids that the tenant has, in no particular order. */
export function jobsByIds(db: Executor, tenant: string, ids: readonly string[]): Promise<JobRow[]> {
  return db.query<JobRow>(BY_IDS, [pgArray(ids), tenant]);
}

/** One job, or null when the tenant has none of this id. */
export async function jobById(db: Executor, tenant: string, id: string): Promise<JobRow | null> {
  return (await jobsByIds(db, tenant, [id]))[0] ?? null;
}
