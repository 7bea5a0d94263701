import { pgArray, pgTextArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';

const ADD_CHILDREN = `
with d as (
  insert into waymark.job_dependencies (job_id, upstream_id, kind, policy, position, satisfied_at)
  select $1::uuid, x.id, 'CHILD', $2, x.n::int, case when x.ended then clock_timestamp() end
  from unnest($3::uuid[], $4::boolean[]) with ordinality as x(id, ended, n)
  on conflict (job_id, upstream_id, kind) do nothing
)
update waymark.job_states set depends = true where id = $1::uuid and not depends`;

/** Ties children to the locked parent, which may wait for them from now on. */
export async function addChildren(
  tx: Executor,
  parentId: string,
  policy: 'CONTINUE' | 'CANCEL_SIBLINGS',
  children: readonly { id: string; ended: boolean }[],
): Promise<void> {
  await tx.query(ADD_CHILDREN, [
    parentId,
    policy,
    pgArray(children.map((c) => c.id)),
    pgArray(children.map((c) => c.ended)),
  ]);
}

const KEEP_SEEN = `
with l as materialized (
  select s.id, s.epoch from waymark.job_states s
  where s.id = $1::uuid and s.worker_id is not null and s.attempt = $2::int
  for no key update
)
update waymark.checkpoints c set data = (c.data::jsonb || jsonb_build_object('seen', $4::int[]))::json
from l where ${probes('c.job_id', 'l.id')} and c.epoch = l.epoch and c.key = $3 and c.kind = 'CHILDREN'
returning 1 as one`;

/**
 * Keeps which run of each child the parent has seen the end of, so that it sees the same one ever after. Not an advance of
 * the job: no event. False: the attempt has lost the job.
 */
export async function keepSeen(
  db: Executor,
  parent: { jobId: string; attempt: number; key: string },
  runs: readonly number[],
): Promise<boolean> {
  const rows = await db.query(KEEP_SEEN, [parent.jobId, parent.attempt, parent.key, pgArray(runs)]);
  return rows.length > 0;
}

const WAITERS = `
with recursive w(id) as (
  select $1::uuid
  union
  select d.job_id from w cross join lateral (
    select d.job_id from waymark.job_dependencies d join waymark.job_states s on ${probes('s.id', 'd.job_id')}
    where d.upstream_id = w.id and s.finished_at is null offset 0) d
)
select s.id, case when s.waiting_kind is distinct from 'DEPENDENCIES' then s.concurrency_key end as "concurrencyKey"
from w cross join lateral (
  select s.id, s.waiting_kind, s.concurrency_key from waymark.job_states s where s.id = w.id offset 0) s
where s.id = any($2::uuid[]) or s.concurrency_key = any($3::text[])`;

/**
 * Of this job and of those that wait for it, also through others: which are among `ids`, and which have their turn for one of
 * these concurrency keys. It must not wait for them.
 */
export async function waitersAmong(
  tx: Executor,
  jobId: string,
  { ids, keys }: { ids: readonly string[]; keys: readonly string[] },
): Promise<{ id: string; concurrencyKey: string | null }[]> {
  return ids.length === 0 && keys.length === 0 ? [] : tx.query(WAITERS, [jobId, pgArray(ids), pgTextArray(keys)]);
}

/** What children take over from their parent. */
export async function parentOf(
  tx: Executor,
  id: string,
): Promise<{ tenant: string; submittedBy: string; graphId: string | null } | null> {
  const [row] = await tx.query<{ tenant: string; submittedBy: string; graphId: string | null }>(
    'select j.tenant, j.submitted_by as "submittedBy", j.graph_id as "graphId" from waymark.jobs j where j.id = $1::uuid',
    [id],
  );
  return row ?? null;
}
