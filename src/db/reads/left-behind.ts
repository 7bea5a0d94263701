import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

const LEFT_BEHIND = `
select s.id, j.parent_id as parent
from unnest($1::text::uuid[]) as i(id)
cross join lateral (select x.id, x.epoch from waymark.job_states x where x.id = i.id offset 0) p
cross join lateral (
  select x.id, x.parent_id from waymark.jobs x where x.parent_id = i.id and x.idempotency_key is null offset 0) j
cross join lateral (select x.id from waymark.job_states x where x.id = j.id and x.finished_at is null offset 0) s
where not j.id in (
  select e::uuid from waymark.checkpoints c cross join lateral json_array_elements_text(c.data -> 'jobs') as e
  where c.job_id = p.id and c.epoch = p.epoch and c.kind = 'CHILDREN')`;

/**
 * Unfinished children that no checkpoint of their parent names any more: it will submit others in their place. One with an
 * idempotency key is not among them, since that leads the parent to it again.
 */
export function leftBehind(db: Executor, parents: readonly string[]): Promise<{ id: string; parent: string }[]> {
  return db.query(LEFT_BEHIND, [pgArray(parents)]);
}

const CHILDREN_AMONG = `
select j.id from unnest($1::text::uuid[]) as i(id)
cross join lateral (
  select x.id, x.parent_id from waymark.jobs x where x.id = i.id and x.idempotency_key is null offset 0) j
where j.parent_id = any($1::text::uuid[])`;

/** Those of these jobs in whose place another of them submits new ones when it begins anew. */
export async function replacedAmong(db: Executor, ids: readonly string[]): Promise<Set<string>> {
  return new Set((await db.query<{ id: string }>(CHILDREN_AMONG, [pgArray(ids)])).map(({ id }) => id));
}
