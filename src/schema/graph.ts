import { MAX_GRAPH_NODES } from '../core/dependency.ts';
import type { GraphEdge as GraphEdgeRow, GraphSummary } from '../core/graph.ts';
import type { GraphNodeView } from '../engine/live/types.ts';
import { builder } from './builder.ts';
import type { SchemaContext } from './context.ts';
import { DependencyPolicyEnum, JobStateEnum } from './enums.ts';
import { Progress } from './job-parts.ts';
import { Node } from './node.ts';
import { Graph, Job } from './refs.ts';
import { allStates, StateCount } from './state-count.ts';

type GraphSource = typeof Graph.$inferType;

/** What a graph may have: each level of `job → graph → nodes → job` costs as much. */
const nodesCost = { field: 1, multiplier: MAX_GRAPH_NODES };

export const GraphNode = builder.objectRef<GraphNodeView>('GraphNode').implement({
  description: 'A job in its place in a graph.',
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Its name, unique within the graph.' }),
    job: t.field({ type: Job, description: 'The job.', resolve: (node) => node.job }),
    deduplicated: t.exposeBoolean('deduplicated', {
      description: 'Whether the node’s key stood for this job already: its `graph` is then its own, or none.',
    }),
  }),
});

const GraphEdge = builder.objectRef<GraphEdgeRow>('GraphEdge').implement({
  description: 'One node goes before another.',
  fields: (t) => ({
    from: t.exposeString('from', { description: 'Name of the node that goes first.' }),
    to: t.exposeString('to', { description: 'Name of the node that waits for it.' }),
    policy: t.field({
      type: DependencyPolicyEnum,
      description: 'What becomes of the second when the first does not complete.',
      resolve: (edge) => edge.policy,
    }),
  }),
});

/** The nodes whose jobs are still there: a job past its retention leaves its graph. */
async function nodesOf(graph: GraphSource, { loaders }: SchemaContext): Promise<GraphNodeView[]> {
  if (graph.nodes) return [...graph.nodes];
  const rows = await loaders.graphNodes.load(graph.id);
  const jobs = await Promise.all(rows.map(({ jobId }) => loaders.job.load(jobId)));
  return rows.flatMap(({ name, deduplicated }, i) => {
    const job = jobs[i];
    return job ? [{ name, deduplicated, job }] : [];
  });
}

async function summaryOf(graph: GraphSource, { loaders }: SchemaContext): Promise<GraphSummary> {
  return graph.summary ?? loaders.graphSummary(graph.id);
}

Graph.implement({
  description: 'Jobs that were submitted together, with what goes before what.',
  interfaces: [Node],
  fields: (t) => ({
    title: t.exposeString('title', {
      description: 'For people: as given at submit, else the names of its first nodes.',
    }),
    version: t.int({
      description:
        'The versions of its nodes’ jobs together: grows with every change of any of them, fact or progress, so drop what is older than what you have. Only retention, which removes jobs, lowers it.',
      resolve: async (graph, _, context) => (await summaryOf(graph, context)).version,
    }),
    state: t.field({
      type: JobStateEnum,
      description:
        'Rolled up from its nodes: while any is unfinished, the state of the one that is furthest on (RUNNING, QUEUED, RETRYING, WAITING_FOR_REVIEW, SCHEDULED, DEFERRED); else FAILED when any failed, CANCELED when any was canceled, COMPLETED. A graph all of whose jobs are past their retention shows COMPLETED.',
      resolve: async (graph, _, context) => (await summaryOf(graph, context)).state,
    }),
    progress: t.field({
      type: Progress,
      nullable: true,
      description:
        'Rolled up: `current` counts finished nodes, and of each running one the fraction that it has reported; `total` is the number of nodes, `unit` is "jobs". Null when no node is left.',
      resolve: async (graph, _, context) => (await summaryOf(graph, context)).progress,
    }),
    counts: t.field({
      type: [StateCount],
      description: 'Its nodes per state, all nine. Exact.',
      resolve: async (graph, _, context) =>
        allStates([...(await summaryOf(graph, context)).counts].map(([state, n]) => ({ state, n }))),
    }),
    nodes: t.field({
      type: [GraphNode],
      description: `Its nodes in the order in which they were given, at most ${MAX_GRAPH_NODES}. Those whose job is past its retention are left out.`,
      complexity: nodesCost,
      resolve: (graph, _, context) => nodesOf(graph, context),
    }),
    edges: t.field({
      type: [GraphEdge],
      description: 'What goes before what, by the names of nodes, also of those that are left out of `nodes`.',
      complexity: nodesCost,
      resolve: (graph) => graph.edges,
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When it was handed in.',
      resolve: (graph) => graph.createdAt,
    }),
    finishedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When its last node ended; null while any is unfinished.',
      resolve: async (graph, _, context) => (await summaryOf(graph, context)).finishedAt,
    }),
  }),
});
