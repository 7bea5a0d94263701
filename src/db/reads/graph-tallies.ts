import type { GraphTally } from '../../core/graph.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

// A node is probed by its id, whatever the statistics say: see `jobsByIds`. What a handler reports may be no number.
const TALLIES = `
select n.graph_id as "graphId", s.state, count(*)::int as n, sum(s.version)::bigint as versions,
       sum(case when s.state = 'RUNNING' and json_typeof(s.progress -> 'current') = 'number'
                 and json_typeof(s.progress -> 'total') = 'number' and (s.progress ->> 'total')::float8 > 0
                then least(1, greatest(0, (s.progress ->> 'current')::float8 / (s.progress ->> 'total')::float8))
                else 0 end)::float8 as done,
       max(s.finished_at) as "finishedAt",
       max(greatest(s.changed_at, case when s.state = 'RUNNING' then (s.progress ->> 'updatedAt')::timestamptz end))
         as "changedAt"
from unnest($2::text::uuid[]) as i(id)
cross join lateral (select n.graph_id, n.job_id from waymark.graph_nodes n where n.graph_id = i.id offset 0) n
cross join lateral (
  select s.tenant, s.state, s.version, s.progress, s.finished_at, s.changed_at
  from waymark.job_states s where s.id = n.job_id offset 0) s
where s.tenant = $1
group by n.graph_id, s.state`;

/** What the nodes of graphs make together, per graph and state; a graph without nodes that are left has no rows. */
export function graphTallies(
  db: Executor,
  tenant: string,
  graphIds: readonly string[],
): Promise<(GraphTally & { graphId: string })[]> {
  return db.query(TALLIES, [tenant, pgArray(graphIds)]);
}
