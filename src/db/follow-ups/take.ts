import type { JobState } from '../../core/state.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

/** What is to be carried out: a job that ended (ENDED), or was retried and may revive others (REVIVED). */
export interface FollowUpRow {
  id: string;
  jobId: string;
  kind: 'ENDED' | 'REVIVED';
}

// Whoever takes one holds its row until the end of the transaction; nobody waits for it.
const take = (which: string) => `
select f.id, f.job_id as "jobId", f.kind from waymark.followups f
${which}
order by f.created_at
limit $1::int
for update skip locked`;
const TAKE = take('where not f.job_id = any($2::uuid[])');
const TAKE_OF = take('where f.job_id = any($2::uuid[])');

/** Takes follow-ups of these jobs. */
export function takeFollowUpsOf(tx: Executor, limit: number, jobIds: readonly string[]): Promise<FollowUpRow[]> {
  return tx.query(TAKE_OF, [limit, pgArray(jobIds)]);
}

/** Takes the oldest follow-ups, but for those of jobs that could not be told a moment ago. */
export function takeFollowUps(tx: Executor, limit: number, except: readonly string[]): Promise<FollowUpRow[]> {
  return tx.query(TAKE, [limit, pgArray(except)]);
}

/** They are carried out. */
export async function removeFollowUps(tx: Executor, ids: readonly string[]): Promise<void> {
  await tx.query('delete from waymark.followups where id = any($1::uuid[])', [pgArray(ids)]);
}

/**
 * The edges `d` to what depends on a job, of every kind. Nothing else may be asked in there: with `satisfied_at is null` a plan
 * from when there were few would walk through the index of all open edges.
 */
export const edgesBehind = (id: string) =>
  `(select d.* from waymark.job_dependencies d where d.upstream_id = ${id} offset 0) d`;

// Every job that a follow-up may write, so that all are locked in one round. Downstream, a dependant that is canceled or
// fails takes its own dependants along. `by` is the job of the follow-up that needs the other one. Each step is a probe of
// an index by LATERAL: statistics of a young table would have it scan the whole at each step of the recursion.
const CONCERNED = `
with recursive e as materialized (
  select s.* from unnest($1::uuid[]) as i(id) cross join lateral (
    select s.id, s.tenant, s.state, s.concurrency_key from waymark.job_states s where s.id = i.id offset 0) s
),
f(by, id) as (
  select e.id, e.id from e where e.state in ('FAILED', 'CANCELED')
  union
  select f.by, d.job_id from f cross join lateral ${edgesBehind('f.id')}
  cross join lateral (
    select 1 from waymark.job_states s where s.id = d.job_id and s.state = 'DEFERRED' offset 0) s
  where d.kind = 'DEPENDENCY' and d.policy <> 'CONTINUE' and d.satisfied_at is null
),
x(by, id) as (
  select e.id, e.id from e
  union all
  select r, r from unnest($2::uuid[]) as y(r)
  union all
  select o.by, d.job_id from (select e.id as by, e.id from e union select f.by, f.id from f) o
  cross join lateral ${edgesBehind('o.id')}
  where d.satisfied_at is null
  union all
  select e.id, c.id from e cross join lateral (
    select j.id from waymark.jobs j where j.parent_id = e.id offset 0) c
  where e.state = 'CANCELED'
  union all
  select e.id, o.upstream_id from e cross join lateral ${edgesBehind('e.id')} cross join lateral (
    select o.upstream_id from waymark.job_dependencies o
    where o.job_id = d.job_id and o.kind = 'CHILD' and o.satisfied_at is null offset 0) o
  where d.policy = 'CANCEL_SIBLINGS' and e.state in ('FAILED', 'CANCELED')
  union all
  select e.id, b.id from e cross join lateral (
    select s.id from waymark.job_states s
    where s.blocked and s.tenant = e.tenant and s.concurrency_key = e.concurrency_key and s.finished_at is null
    order by s.id limit 1
  ) b
  union all
  select y.r, s.id from unnest($2::uuid[]) as y(r) cross join lateral (
    select s.id from waymark.job_states s where s.failed_upstream_id = y.r offset 0) s
  union all
  select y.r, d.job_id from unnest($2::uuid[]) as y(r) cross join lateral ${edgesBehind('y.r')}
)
select x.by, x.id from x group by x.by, x.id`;

/** The jobs that the follow-ups of these concern, with whose follow-up it is. */
export function concernedJobs(
  tx: Executor,
  ended: readonly string[],
  revived: readonly string[],
): Promise<{ by: string; id: string }[]> {
  return tx.query(CONCERNED, [pgArray(ended), pgArray(revived)]);
}

const lock = (skipLocked: boolean) => `
with i as materialized (select x.id from unnest($1::uuid[]) as x(id) order by x.id)
select s.id, s.state from i cross join lateral (
  select s.id, s.state from waymark.job_states s where s.id = i.id for no key update${skipLocked ? ' skip locked' : ''}
) s`;
const LOCK = lock(false);
const LOCK_FREE = lock(true);

/** Locks jobs in id order, with their states. `wait` false: those that somebody else holds are left out of the answer. */
export async function lockJobs(tx: Executor, ids: readonly string[], wait: boolean): Promise<Map<string, JobState>> {
  const rows = await tx.query<{ id: string; state: JobState }>(wait ? LOCK : LOCK_FREE, [pgArray(ids)]);
  return new Map(rows.map((row) => [row.id, row.state]));
}
