import type { GraphEdge } from '../../core/graph.ts';
import { keyIsFree } from '../key-rules.ts';
import { pgArray, pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';

/** A graph to be written. */
export interface NewGraph {
  id: string;
  tenant: string;
  title: string;
  idempotencyKey: string | null;
  /** Of everything that was submitted. */
  digest: string;
  submittedBy: string;
  edges: readonly GraphEdge[];
}

const TAKE_KEY = `
with t as materialized (select clock_timestamp() as now)
insert into waymark.idempotency_keys as k (tenant, kind, name, key, job_id, digest, scope, created_at, expires_at)
select $1, 'graph', '', $2, $3::uuid, $4, 'RETENTION', t.now, t.now + $5::bigint * interval '1 millisecond' from t
on conflict (tenant, kind, name, key) do update
set (job_id, digest, created_at, expires_at) = (
  select case when f.free then excluded.job_id else k.job_id end,
         case when f.free then excluded.digest else k.digest end,
         case when f.free then excluded.created_at else k.created_at end,
         case when f.free then excluded.expires_at else k.expires_at end
  from (select k.expires_at <= excluded.created_at as free) f
)
returning k.job_id as "graphId", k.digest`;

/** Takes the graph's key, or says whose it is. Two callers at once: the second waits, and gets the first one's graph. */
export async function takeGraphKey(
  tx: Executor,
  graph: NewGraph & { idempotencyKey: string },
  retainKeysMs: number,
): Promise<{ graphId: string; digest: string }> {
  const params = [graph.tenant, graph.idempotencyKey, graph.id, graph.digest, retainKeysMs];
  const [row] = await tx.query<{ graphId: string; digest: string }>(TAKE_KEY, params);
  return row as { graphId: string; digest: string };
}

const WRITE_GRAPH = `
with g as (
  insert into waymark.graphs (id, tenant, title, idempotency_key, input_digest, submitted_by, edges, created_at)
  values ($1::uuid, $2, $3, $4, $5, $6, $7::json, clock_timestamp())
  on conflict (id) do nothing
)
insert into waymark.graph_nodes (graph_id, name, position, job_id, deduplicated)
select $1::uuid, x.name, x.position, x.job_id, x.deduplicated
from unnest($8::text[], $9::uuid[], $10::boolean[]) with ordinality as x(name, job_id, deduplicated, position)
on conflict (graph_id, name) do nothing`;

/** Writes the graph and which job each of its nodes is. A second call with the same id changes nothing. */
export async function writeGraph(
  tx: Executor,
  graph: NewGraph,
  nodes: readonly { name: string; jobId: string; deduplicated: boolean }[],
): Promise<void> {
  await tx.query(WRITE_GRAPH, [
    graph.id,
    graph.tenant,
    graph.title,
    graph.idempotencyKey,
    graph.digest,
    graph.submittedBy,
    JSON.stringify(graph.edges),
    pgTextArray(nodes.map((n) => n.name)),
    pgArray(nodes.map((n) => n.jobId)),
    pgArray(nodes.map((n) => n.deduplicated)),
  ]);
}

const KEYS_IN_USE = `
select k.name as task, k.key, k.job_id as "jobId", k.digest, k.scope
from unnest($2::text[], $3::text[]) as x(task, key)
join waymark.idempotency_keys k on k.tenant = $1 and k.kind = 'task' and k.name = x.task and k.key = x.key
where not ${keyIsFree('clock_timestamp()')}`;

/** The jobs that these keys of tasks stand for now; keys that are free are left out. */
export function keysInUse(
  tx: Executor,
  tenant: string,
  keys: readonly { task: string; key: string }[],
): Promise<{ task: string; key: string; jobId: string; digest: string; scope: string }[]> {
  return tx.query(KEYS_IN_USE, [tenant, pgTextArray(keys.map((k) => k.task)), pgTextArray(keys.map((k) => k.key))]);
}
