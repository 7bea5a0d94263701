// What the removal of single jobs and that of families have in common, as CTEs. Rows are found by arrays of ids: joined with
// a list of unknown length, a plan from when the tables were empty merges it with the whole of an index.

const ANY = (ids: string) => `any((select ids from ${ids})::uuid[])`;

/**
 * Locks the keys of the jobs that are to go, SKIP LOCKED: a submit that holds one may wait for the next, and a pruner that
 * then waited for the first would be a deadlock. Expects `o` (id, keyed).
 */
export const LOCK_KEYS = `
ua as materialized (select array(select o.id from o where not o.keyed)::uuid[] as ids),
h as materialized (select k.job_id from waymark.idempotency_keys k where k.job_id = ${ANY('ua')}),
k as materialized (
  select k.job_id from waymark.idempotency_keys k where k.job_id = ${ANY('ua')}
  for update skip locked
)`;

/** Of a job `o` after `LOCK_KEYS`: nobody else holds a key of it. */
export const KEYS_ARE_FREE = '(o.keyed or o.id in (select k.job_id from k) or o.id not in (select h.job_id from h))';

/** Removes what belongs to jobs. @param ids CTE with their ids as one array, `ids` */
export const REMOVE_BELONGINGS = (ids: string) => `
x1 as (delete from waymark.payloads p where p.job_id = ${ANY(ids)}),
x2 as (delete from waymark.ended_attempts a where a.job_id = ${ANY(ids)}),
x3 as (delete from waymark.checkpoints c where c.job_id = ${ANY(ids)}),
x4 as (delete from waymark.events e where e.job_id = ${ANY(ids)}),
x5 as (delete from waymark.job_logs o where o.job_id = ${ANY(ids)}),
x6 as (delete from waymark.artifacts a where a.job_id = ${ANY(ids)})`;

/** Removes jobs themselves, with their keys. @param ids as above */
export const REMOVE_JOBS = (ids: string) => `
y1 as (delete from waymark.idempotency_keys k where k.job_id = ${ANY(ids)}),
y2 as (delete from waymark.jobs j where j.id = ${ANY(ids)}),
y3 as (delete from waymark.job_states s where s.id = ${ANY(ids)})`;
