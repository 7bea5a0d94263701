import type { GraphNodeRow, GraphRow } from '../../core/graph.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

export const GRAPH_COLUMNS = `
g.id, g.tenant, g.title, g.idempotency_key as "idempotencyKey", g.submitted_by as "submittedBy",
g.created_at as "createdAt", g.pruned_at as "prunedAt", g.edges`;

/** The graphs of these ids that the tenant has, in no particular order. */
export function graphsByIds(db: Executor, tenant: string, ids: readonly string[]): Promise<GraphRow[]> {
  return db.query<GraphRow>(
    `select ${GRAPH_COLUMNS} from waymark.graphs g where g.id = any($1::text::uuid[]) and g.tenant = $2`,
    [pgArray(ids), tenant],
  );
}

/** Which job each node of these graphs is, in the order in which they were given. */
export function graphNodes(db: Executor, graphIds: readonly string[]): Promise<GraphNodeRow[]> {
  return db.query<GraphNodeRow>(
    `select n.graph_id as "graphId", n.name, n.job_id as "jobId", n.deduplicated
from waymark.graph_nodes n where n.graph_id = any($1::text::uuid[]) order by n.graph_id, n.position`,
    [pgArray(graphIds)],
  );
}

/** A graph of the tenant with its nodes, or null when it has none of this id. */
export async function graphWithNodes(
  db: Executor,
  tenant: string,
  id: string,
): Promise<{ row: GraphRow; nodes: GraphNodeRow[] } | null> {
  const [[row], nodes] = await Promise.all([graphsByIds(db, tenant, [id]), graphNodes(db, [id])]);
  return row ? { row, nodes } : null;
}
