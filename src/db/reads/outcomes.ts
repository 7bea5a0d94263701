import type { OutcomeRow } from '../../core/outcome.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

const OUTCOME = (from: string) => `
select s.id as "jobId", j.task, j.node_name as name, s.state, p.data as result, s.error, s.cancel_reason as reason
${from}
cross join lateral (
  select x.id, x.state, x.error, x.cancel_reason from waymark.job_states x where x.id = i.id offset 0) s
cross join lateral (select x.task, x.node_name from waymark.jobs x where x.id = i.id offset 0) j
left join lateral (
  select x.data from waymark.payloads x where x.job_id = i.id and x.kind = 'result' and s.state = 'COMPLETED' offset 0
) p on true
order by i.n`;

const BY_IDS = OUTCOME('from unnest($1::uuid[]) with ordinality as i(id, n)');
const OF_DEPENDENCIES = OUTCOME(`
from (select d.upstream_id as id, d.position as n from waymark.job_dependencies d
      where d.job_id = $1::uuid and d.kind = 'DEPENDENCY') i`);

/** How these jobs stand, in the order of the ids; those that are gone are left out. */
export function outcomesOf(db: Executor, ids: readonly string[]): Promise<OutcomeRow[]> {
  return db.query<OutcomeRow>(BY_IDS, [pgArray(ids)]);
}

/** How the jobs stand that a job depends on, in the order in which they were given. */
export function dependencyOutcomes(db: Executor, jobId: string): Promise<OutcomeRow[]> {
  return db.query<OutcomeRow>(OF_DEPENDENCIES, [jobId]);
}
