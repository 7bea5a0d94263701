import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import type { UntoldRow } from './concurrency.ts';

/** Unfinished jobs that are to be canceled because of one that ended. */
export interface CascadeRow {
  id: string;
  /** Whose child, or whose sibling it is. */
  by: string;
  relation: 'parent' | 'sibling';
  /** Who canceled the parent. */
  actor: string | null;
}

const CASCADE = `
select s.id, p.id as by, 'parent' as relation, p.cancel_requested_by as actor
from waymark.job_states p join waymark.jobs j on j.parent_id = p.id join waymark.job_states s on s.id = j.id
where p.id = any($1::uuid[]) and p.state = 'CANCELED' and p.cancel_cascade
  and s.id = any($2::uuid[]) and s.finished_at is null
union all
select s.id, u.id, 'sibling', null
from waymark.job_states u
join waymark.job_dependencies d on d.upstream_id = u.id and d.kind = 'CHILD' and d.policy = 'CANCEL_SIBLINGS'
join waymark.job_states p on p.id = d.job_id
join waymark.checkpoints c on c.job_id = p.id and c.epoch = p.epoch and c.kind = 'CHILDREN'
  and c.data::jsonb -> 'jobs' @> to_jsonb(u.id::text)
cross join lateral json_array_elements_text(c.data -> 'jobs') as o(id)
join waymark.jobs j on j.id = o.id::uuid and j.parent_id = p.id
join waymark.job_states s on s.id = j.id
where u.id = any($1::uuid[]) and u.state in ('FAILED', 'CANCELED') and s.id = any($2::uuid[]) and s.finished_at is null`;

/**
 * The children of canceled jobs, and the siblings of failed children that ask for it, as far as they are locked. Siblings are
 * those of one call, which its checkpoint names.
 */
export function cascadeOf(tx: Executor, ended: readonly string[], locked: readonly string[]): Promise<CascadeRow[]> {
  return tx.query<CascadeRow>(CASCADE, [pgArray(ended), pgArray(locked)]);
}

const WITHDRAW = `
update waymark.approvals a
set state = 'WITHDRAWN', version = a.version + 1, decided_at = clock_timestamp()
from waymark.job_states s
where s.id = any($1::uuid[]) and s.finished_at is not null and a.job_id = s.id and a.state = 'OPEN'
returning s.id, s.tenant, s.task, s.queue, s.state, s.run, s.version, s.last_seq as "lastSeq"`;

/**
 * Closes the open approvals of jobs that have ended: nobody waits for the answer. The terminal event was the last, so no
 * event tells of it. Returns the jobs.
 */
export function withdrawApprovals(tx: Executor, ended: readonly string[]): Promise<UntoldRow[]> {
  return tx.query<UntoldRow>(WITHDRAW, [pgArray(ended)]);
}
