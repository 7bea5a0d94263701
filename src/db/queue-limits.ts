/**
 * What the limits of a queue leave free: the one place of these rules, for the claim, for `waitingOn` and for filters.
 * Expressions over `waymark.queues q`. `now` is a moment that does not change within the statement and that an index
 * scan may be bounded by: `(select now from t)`, or `statement_timestamp()`; not `clock_timestamp()`.
 */

/** Whether it has a limit at all. */
export const LIMITED = '(q.max_running is not null or q.rate_limit_max is not null)';

// By the index of running jobs, of which there are never more than slots of workers. Counted together for all queues of
// the statement, when the first of them asks: fifty queues with limits would else read that index fifty times.
const RUNNING = `
coalesce((
  with running as materialized (
    select r.queue, count(*) as n from waymark.job_states r where r.state = 'RUNNING' group by r.queue
  )
  select running.n from running where running.queue = q.name
), 0)`;

/** Whether it runs as many jobs as it may. */
export const FULL = `(q.max_running is not null and q.max_running <= ${RUNNING})`;

const within = (now: string) => `
b.queue = q.name and b.at > ${now} - q.rate_limit_per_ms * interval '1 millisecond'`;

/** How many more jobs may start now; negative where a limit was lowered; null without any limit. */
export const room = (now: string) => `
least(
  case when q.max_running is not null then q.max_running - ${RUNNING} end,
  case when q.rate_limit_max is not null then q.rate_limit_max - (
    select coalesce(sum(b.n), 0) from waymark.queue_starts b where ${within(now)}
  ) end
)::int`;

/**
 * When its rate limit allows the next start; null: now, or it has none. The newest starts that alone use up the limit
 * decide: the oldest of these must have left the window.
 */
export const nextStart = (now: string) => `
(
  select x.at + q.rate_limit_per_ms * interval '1 millisecond'
  from (
    select b.at, sum(b.n) over (order by b.at desc) as n from waymark.queue_starts b where ${within(now)}
  ) x
  where x.n >= q.rate_limit_max
  order by x.at desc
  limit 1
)`;

/** Whether its rate limit is used up for now. */
export const throttled = (now: string) => `(q.rate_limit_max is not null and ${nextStart(now)} is not null)`;
