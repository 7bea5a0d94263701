import type { JobState } from '../../core/state.ts';
import { pgArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';

// Locked until the dependants are written: an upstream job either ends before, and is seen to have ended, or after, and
// then finds the dependants. Marking it makes its end leave a row in `followups`.
const LOCK_UPSTREAMS = `
with i as materialized (select x.id from unnest($1::uuid[]) as x(id) order by x.id),
l as materialized (
  select s.id, s.state, s.followed from i cross join lateral (
    select s.id, s.state, s.followed from waymark.job_states s
    where s.id = i.id and s.tenant = $2
    for no key update
  ) s
),
u as (update waymark.job_states s set followed = true from l where ${probes('s.id', 'l.id')} and not l.followed)
select l.id, l.state from l`;

/** Locks jobs, in id order, that others are to wait for. Ids that the tenant has not are left out of the answer. */
export async function lockUpstreams(
  tx: Executor,
  tenant: string,
  ids: readonly string[],
): Promise<Map<string, JobState>> {
  const rows = await tx.query<{ id: string; state: JobState }>(LOCK_UPSTREAMS, [pgArray(ids), tenant]);
  return new Map(rows.map((row) => [row.id, row.state]));
}

/** Asks for the follow-up of jobs that have ended already. */
export async function addFollowups(tx: Executor, ids: readonly string[]): Promise<void> {
  await tx.query(
    `insert into waymark.followups (job_id, kind, created_at)
select x.id, 'ENDED', clock_timestamp() from unnest($1::uuid[]) as x(id)`,
    [pgArray(ids)],
  );
}
