/**
 * Whether another job may have the key `k`. RETENTION: at its expiry. UNTIL_FINISHED: when its job is seen to be finished,
 * in the run for which the key holds. Not "no unfinished job is seen": whoever waited for the row has the newest version of
 * the key, but the jobs of its statement's snapshot, in which the job of a caller who won a moment ago is not there at all,
 * and one that was retried a moment ago is finished.
 * @param moment when, as SQL
 */
export const keyIsFree = (moment: string) => `(
  case when k.scope = 'UNTIL_FINISHED' then exists (
         select 1 from waymark.job_states s where s.id = k.job_id and s.finished_at is not null and s.run >= k.run)
       else k.expires_at <= ${moment} end)`;

/**
 * Two CTEs by which finished jobs that are to run again take back the keys that are theirs until they are finished. `kt`
 * names those that got theirs; `kj` those that needed one. A job that is in `kj` alone must stay as it is: another job
 * has come for its key meanwhile. Expects `t(now)`.
 * @param jobs CTE of locked finished jobs: id, tenant, task, run
 */
export const takeKeysBack = (jobs: string) => `
kj as materialized (
  select o.id, o.tenant, o.task, o.run, j.idempotency_key as key, j.input_digest
  from ${jobs} o cross join lateral (
    select * from waymark.jobs j where j.id = o.id and j.key_scope = 'UNTIL_FINISHED' offset 0) j
  where o.finished_at is not null
),
kt as (
  insert into waymark.idempotency_keys as k (tenant, kind, name, key, job_id, digest, scope, run, created_at, expires_at)
  select distinct on (kj.tenant, kj.task, kj.key)
         kj.tenant, 'task', kj.task, kj.key, kj.id, kj.input_digest, 'UNTIL_FINISHED', kj.run + 1, t.now, t.now
  from kj, t
  order by kj.tenant, kj.task, kj.key, kj.id
  on conflict (tenant, kind, name, key) do update
  set job_id = excluded.job_id, digest = excluded.digest, scope = excluded.scope, run = excluded.run,
      created_at = excluded.created_at, expires_at = excluded.expires_at
  where k.job_id = excluded.job_id or ${keyIsFree('excluded.created_at')}
  returning k.job_id
)`;

/** Of a job `o` after `takeKeysBack`: nobody else has the key that it needs. */
export const HAS_ITS_KEY = `(o.id in (select job_id from kt) or o.id not in (select id from kj))`;
