import { pgArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';
import type { UntoldRow } from './concurrency.ts';
import { edgesBehind } from './take.ts';

/** Unfinished jobs that are to be canceled because of one that ended. */
export interface CascadeRow {
  id: string;
  /** Whose child, or whose sibling it is. */
  by: string;
  relation: 'parent' | 'sibling';
  /** Who canceled the parent. */
  actor: string | null;
}

// The locked jobs are hashed (COALESCE keeps the planner from joining them): of a parent with ten thousand children all are
// among them.
const CASCADE = `
with l as materialized (select x.id from unnest($2::uuid[]) as x(id))
select s.id, p.id as by, 'parent' as relation, p.cancel_requested_by as actor
from waymark.job_states p
cross join lateral (select j.id from waymark.jobs j where j.parent_id = p.id offset 0) j
join waymark.job_states s on ${probes('s.id', 'j.id')}
where p.id = any($1::uuid[]) and p.state = 'CANCELED' and p.cancel_cascade
  and coalesce(j.id in (select l.id from l), false) and s.finished_at is null
union all
select s.id, u.id, 'sibling', null
from waymark.job_states u
cross join lateral ${edgesBehind('u.id')}
cross join lateral (select p.id, p.epoch from waymark.job_states p where p.id = d.job_id offset 0) p
cross join lateral (
  select c.data from waymark.checkpoints c
  where c.job_id = p.id and c.epoch = p.epoch and c.kind = 'CHILDREN' and c.data::jsonb -> 'jobs' @> to_jsonb(u.id::text)
  offset 0) c
cross join lateral json_array_elements_text(c.data -> 'jobs') as o(id)
cross join lateral (select j.id, j.parent_id from waymark.jobs j where j.id = o.id::uuid offset 0) j
join waymark.job_states s on ${probes('s.id', 'j.id')}
where u.id = any($1::uuid[]) and u.state in ('FAILED', 'CANCELED') and d.kind = 'CHILD' and d.policy = 'CANCEL_SIBLINGS'
  and j.parent_id = p.id and coalesce(j.id in (select l.id from l), false) and s.finished_at is null`;

/**
 * The children of canceled jobs, and the siblings of failed children that ask for it, as far as they are locked. Siblings are
 * those of one call, which its checkpoint names.
 */
export function cascadeOf(tx: Executor, ended: readonly string[], locked: readonly string[]): Promise<CascadeRow[]> {
  return tx.query<CascadeRow>(CASCADE, [pgArray(ended), pgArray(locked)]);
}

// COALESCE: a plan from when few were open would walk through all open ones, in an index that holds no others.
const WITHDRAW = `
update waymark.approvals a
set state = 'WITHDRAWN', version = a.version + 1, decided_at = clock_timestamp()
from waymark.job_states s
where s.id = any($1::uuid[]) and s.finished_at is not null
  and ${probes('a.job_id', 's.id')} and coalesce(a.state, '') = 'OPEN'
returning s.id, s.tenant, s.task, s.queue, s.state, s.run, s.version, s.last_seq as "lastSeq"`;

/**
 * Closes the open approvals of jobs that have ended: nobody waits for the answer. The terminal event was the last, so no
 * event tells of it. Returns the jobs.
 */
export function withdrawApprovals(tx: Executor, ended: readonly string[]): Promise<UntoldRow[]> {
  return tx.query<UntoldRow>(WITHDRAW, [pgArray(ended)]);
}
