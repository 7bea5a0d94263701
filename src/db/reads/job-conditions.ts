import { FULL, throttled } from '../queue-limits.ts';

/** Expressions over `waymark.jobs j` joined with `waymark.job_states s`, used by filters and by single fields alike. */

/**
 * How a job is doing (core of `JobHealth`). Anything but OK needs a worker, so only RUNNING jobs can have it.
 * The worst comes first: a lease that is over says more than a blocked loop.
 */
export const HEALTH = `
case when s.state <> 'RUNNING' then 'OK' else (
  select case
    when w.id is null or w.state = 'LOST' or w.lease_until < clock_timestamp() then 'STALLED'
    when j.stall_timeout_ms is not null
      and s.last_advance_at + j.stall_timeout_ms * interval '1 millisecond' < clock_timestamp() then 'NOT_ADVANCING'
    when w.blocked_since is not null then 'LOOP_BLOCKED'
    else 'OK'
  end
  from (values (1)) x left join waymark.workers w on w.id = s.worker_id
) end`;

/** Whether a live worker takes jobs of this queue and task. A worker without queues serves all. */
export const SERVED = `
exists (
  select 1 from waymark.workers w
  where w.state = 'ACTIVE' and w.lease_until > clock_timestamp()
    and s.task = any(w.tasks) and (cardinality(w.queues) = 0 or s.queue = any(w.queues))
)`;

/**
 * Why a job is not running (core of `WaitingKind`); null while it runs or has ended. The limits of queues are looked up
 * by `in`, and so once for the statement and not for each of a million jobs.
 */
export const WAITING = `
case s.state
  when 'SCHEDULED' then coalesce(s.waiting_kind, 'DUE_TIME')
  when 'RETRYING' then 'RETRY_DELAY'
  when 'DEFERRED' then coalesce(s.waiting_kind, 'DEPENDENCIES')
  when 'WAITING_FOR_REVIEW' then 'REVIEW'
  when 'QUEUED' then case
    when s.blocked then 'CONCURRENCY_KEY'
    when exists (select 1 from waymark.queues q where q.name = s.queue and q.paused) then 'QUEUE_PAUSED'
    when not ${SERVED} then 'NO_WORKER'
    when s.queue in (select q.name from waymark.queues q where ${FULL}) then 'MAX_RUNNING'
    when s.queue in (select q.name from waymark.queues q where ${throttled('statement_timestamp()')}) then 'RATE_LIMIT'
    else 'CAPACITY'
  end
end`;
