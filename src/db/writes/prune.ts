import type { Executor } from '../types.ts';
import { KEYS_ARE_FREE, LOCK_KEYS, REMOVE_BELONGINGS, REMOVE_JOBS } from './prune-parts.ts';

// Jobs without relatives; the others go by families (`prune-families.ts`).
// Rows are locked with SKIP LOCKED and the state is judged again under the lock, so that several pruners
// never wait for each other and a job that somebody retries at this moment stays. Belongings go in the same statement:
// an interrupted pass leaves no orphans. A job with a live key keeps its bare row, so that the key still answers; it is
// counted no longer, since lists do not show it.
// A job whose key is held stays until the next pass.
// Everywhere here the moment is a scalar subquery and no join: only so is it a bound of the index scan. As a join's
// filter it was tried on every row of the index, each sweep on all finished jobs.
const pruneSql = (state: string) => `
with t as materialized (select clock_timestamp() as now),
o as materialized (
  select s.id, s.tenant, s.task, s.queue, s.state, s.finished_at,
         exists (
           select 1 from waymark.idempotency_keys k
           where k.job_id = s.id and k.scope <> 'UNTIL_FINISHED' and k.expires_at > t.now) as keyed
  from waymark.job_states s, t
  where s.state = '${state}' and s.finished_at < (select now from t) - $1::bigint * interval '1 millisecond'
    and s.finished_at >= $3::timestamptz and s.pruned_at is null and not s.followed and not s.depends
  order by s.finished_at, s.id
  limit $2::int
  for no key update of s skip locked
),
${LOCK_KEYS},
l as materialized (select o.* from o where ${KEYS_ARE_FREE}),
la as materialized (select array(select l.id from l)::uuid[] as ids),
ga as materialized (select array(select l.id from l where not l.keyed)::uuid[] as ids),
${REMOVE_BELONGINGS('la')},
${REMOVE_JOBS('ga')},
b as (
  update waymark.job_states s set pruned_at = t.now, progress = null, version = s.version + 1
  from t where s.id = any(array(select l.id from l where l.keyed)::uuid[])
),
c as (
  insert into waymark.count_deltas (at, tenant, queue, task, from_state, to_state, n)
  select t.now, l.tenant, l.queue, l.task, l.state, null, count(*) from l, t
  group by t.now, l.tenant, l.queue, l.task, l.state
)
select (select count(*) from l)::int as pruned, count(*)::int as seen, max(o.finished_at) as last from o`;

const PRUNE = { COMPLETED: pruneSql('COMPLETED'), FAILED: pruneSql('FAILED'), CANCELED: pruneSql('CANCELED') };

/** What one batch of `pruneFinished` did. */
export interface PruneBatch {
  pruned: number;
  /** With those that stay because somebody holds their key: fewer than the limit means that there are no more. */
  seen: number;
  /** Where the next batch may begin; null: nothing was seen. */
  last: string | null;
}

/**
 * Removes up to `limit` jobs without relatives that have been in a terminal state for longer than `olderThanMs`, the oldest
 * first, of those that finished at `from` or later. The entries of what was removed stay in the index until the next
 * vacuum: a batch that began with the oldest each time would walk over those of all batches before.
 */
export async function pruneFinished(
  db: Executor,
  state: 'COMPLETED' | 'FAILED' | 'CANCELED',
  olderThanMs: number,
  limit: number,
  from = '-infinity',
): Promise<PruneBatch> {
  const [row] = await db.query<PruneBatch>(PRUNE[state], [olderThanMs, limit, from]);
  return row ?? { pruned: 0, seen: 0, last: null };
}

// A key of a later run than is seen: its job was retried a moment ago.
const PRUNE_KEYS = `
with t as materialized (select clock_timestamp() as now),
k as materialized (
  select k.ctid as at from waymark.idempotency_keys k
  where k.expires_at <= (select now from t)
    and (k.scope <> 'UNTIL_FINISHED' or not exists (
      select 1 from waymark.job_states s where s.id = k.job_id and (s.finished_at is null or s.run < k.run)))
  order by k.expires_at
  limit $1::int
  for update skip locked
),
d as (
  delete from waymark.idempotency_keys x where x.ctid = any(array(select k.at from k)::tid[])
  returning x.job_id, x.kind
),
o as materialized (
  select s.id, s.pruned_at from waymark.job_states s where s.id = any(array(select d.job_id from d)::uuid[])
),
g as materialized (select array(select o.id from o where o.pruned_at is not null)::uuid[] as ids),
j as (delete from waymark.jobs j where j.id = any((select ids from g)::uuid[])),
s as (delete from waymark.job_states s where s.id = any((select ids from g)::uuid[])),
r as materialized (
  select array(
    select h.id from waymark.graphs h
    where h.id = any(array(select d.job_id from d where d.kind = 'graph')::uuid[]) and h.pruned_at is not null
  )::uuid[] as ids
),
h as (delete from waymark.graphs h where h.id = any((select ids from r)::uuid[])),
n as (delete from waymark.graph_nodes n where n.graph_id = any((select ids from r)::uuid[]))
select count(*)::int as n from d`;

/** Removes expired keys together with the bare rows of their pruned jobs. Returns how many keys went. */
export async function pruneKeys(db: Executor, limit: number): Promise<number> {
  const [row] = await db.query<{ n: number }>(PRUNE_KEYS, [limit]);
  return row?.n ?? 0;
}

// When the key of a bare job was taken over by a new job, nothing leads from a key to the bare row any more. By this age
// the key has expired, so that the scan meets no rows that are still wanted. The oldest are found by the index of bare
// rows and kept as one array: ordered by id in one step the planner would walk the whole primary key. ("Offset 0" keeps a
// probe of the index from being turned into a join.)
const PRUNE_BARE = `
with t as materialized (select clock_timestamp() as now),
o as materialized (
  select array(
    select s.id from waymark.job_states s
    where s.pruned_at is not null and s.pruned_at < (select now from t) - $1::bigint * interval '1 millisecond'
      and not exists (select 1 from waymark.idempotency_keys k where k.job_id = s.id offset 0)
    order by s.pruned_at
    limit $2::int
  ) as ids
),
g as materialized (
  select s.id from waymark.job_states s
  where s.id = any((select ids from o)::uuid[])
  order by s.id
  for no key update skip locked
),
ga as materialized (select array(select g.id from g)::uuid[] as ids),
j as (delete from waymark.jobs j where j.id = any((select ids from ga)::uuid[])),
s as (delete from waymark.job_states s where s.id = any((select ids from ga)::uuid[]))
select count(*)::int as n from g`;

/** Removes bare rows that no key leads to and that were pruned longer ago than `olderThanMs`. Returns how many. */
export async function pruneBare(db: Executor, olderThanMs: number, limit: number): Promise<number> {
  const [row] = await db.query<{ n: number }>(PRUNE_BARE, [olderThanMs, limit]);
  return row?.n ?? 0;
}

// The deltas have no index: a fold takes whatever is there, and two folds at once never take the same rows.
const FOLD = `
with d as (
  delete from waymark.count_deltas where ctid = any(array(
    select ctid from waymark.count_deltas limit $1::int for update skip locked))
  returning *
),
n as (
  select tenant, queue, task, state, sum(n)::bigint as n from (
    select tenant, queue, task, to_state as state, n from d where to_state is not null
    union all
    select tenant, queue, task, from_state, -n from d where from_state is not null
  ) x group by tenant, queue, task, state having sum(n) <> 0 order by tenant, queue, task, state
),
m as (
  insert into waymark.minute_stats as m (minute, tenant, queue, task, from_state, to_state, n)
  select date_trunc('minute', d.at), d.tenant, d.queue, d.task, coalesce(d.from_state, ''), d.to_state, sum(d.n)
  from d where d.to_state is not null
  group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4, 5, 6
  on conflict (minute, tenant, queue, task, from_state, to_state) do update set n = m.n + excluded.n
),
c as (
  insert into waymark.counts as c (tenant, queue, task, state, n)
  select tenant, queue, task, state, n from n
  on conflict (tenant, queue, task, state) do update set n = c.n + excluded.n
)
select count(*)::int as n from d`;

/** Folds up to `limit` deltas into the counts and the per-minute counters. Returns how many it took. */
export async function foldCounts(db: Executor, limit: number): Promise<number> {
  const [row] = await db.query<{ n: number }>(FOLD, [limit]);
  return row?.n ?? 0;
}

/** Drops per-minute counters older than `olderThanMs`. */
export async function pruneStats(db: Executor, olderThanMs: number): Promise<void> {
  await db.query(
    `delete from waymark.minute_stats where minute < (select clock_timestamp() - $1::bigint * interval '1 millisecond')`,
    [olderThanMs],
  );
}
