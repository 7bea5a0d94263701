import { MAX_GRAPH_EDGES, MAX_GRAPH_NODES } from '../core/dependency.ts';
import { InvalidInput, Unavailable } from '../core/errors.ts';
import type { SubmittedGraph } from '../engine/graph-types.ts';
import { builder } from './builder.ts';
import { freshLoaders } from './context.ts';
import { DependencyPolicyEnum } from './enums.ts';
import { resultType } from './errors.ts';
import { graphConflict } from './graph-errors.ts';
import { Graph } from './refs.ts';
import { SubmitJobInput, toSubmitRequest } from './submit-input.ts';

const GraphDependencyInput = builder.inputType('GraphDependencyInput', {
  description: 'A node that goes first.',
  fields: (t) => ({
    node: t.string({ required: true, description: 'Its name.' }),
    policy: t.field({
      type: DependencyPolicyEnum,
      defaultValue: 'CANCEL',
      description: 'What becomes of this node when that one does not complete.',
    }),
  }),
});

const GraphNodeInput = builder.inputType('GraphNodeInput', {
  description: 'One job of a graph.',
  fields: (t) => ({
    name: t.string({
      required: true,
      description: 'Unique within the graph: letters, digits, spaces and `_ - : /`, at most 100.',
    }),
    job: t.field({
      type: SubmitJobInput,
      required: true,
      description:
        'The job. Its `dependsOn` are jobs outside the graph. When its key stands for a job already, the node is that job.',
    }),
    dependsOn: t.field({ type: [GraphDependencyInput], description: 'Nodes that go first, each once.' }),
  }),
});

const SubmitGraphInput = builder.inputType('SubmitGraphInput', {
  description: 'Jobs that belong together, with what goes before what.',
  fields: (t) => ({
    title: t.string({ description: 'For people, at most 200 characters. Default: the names of the first nodes.' }),
    idempotencyKey: t.string({
      description:
        'Makes the call safe to repeat: the same key and nodes give the same graph, `deduplicated`; other nodes are GraphIdempotencyConflict. At most 200 characters.',
    }),
    nodes: t.field({
      type: [GraphNodeInput],
      required: true,
      description: `At least one, at most ${MAX_GRAPH_NODES}, with at most ${MAX_GRAPH_EDGES} dependencies in all, none of them in a circle.`,
    }),
  }),
});

const SubmitGraphPayload = builder.objectRef<SubmittedGraph>('SubmitGraphPayload').implement({
  description: 'Every job of the graph is accepted and will not be lost.',
  fields: (t) => ({
    graph: t.field({
      type: Graph,
      description: 'The graph: new, or the one that the key stands for.',
      resolve: async ({ graphId }, _, { loaders }) => {
        const graph = await loaders.graph.load(graphId);
        if (!graph) throw new Unavailable('the graph was accepted but cannot be read now');
        return graph;
      },
    }),
    deduplicated: t.exposeBoolean('deduplicated', {
      description: 'Whether the key stood for this graph already, so that nothing new was made.',
    }),
  }),
});

const SubmitGraphResult = resultType(
  'SubmitGraphResult',
  'What came of `submitGraph`: all of it, or the first error and nothing. `path` names the node: `nodes.b`.',
  SubmitGraphPayload,
  ['InvalidInput', 'UnknownTask', 'IdempotencyConflict', graphConflict, 'PayloadTooLarge', 'NotFound'],
);

builder.mutationFields((t) => ({
  submitGraph: t.field({
    type: SubmitGraphResult.type,
    description:
      'Hands in jobs together with their dependencies: all or nothing. Without a key a second call makes a second graph.',
    args: { input: t.arg({ type: SubmitGraphInput, required: true, description: 'The graph.' }) },
    resolve: (_, { input }, context) =>
      SubmitGraphResult.run(async () => {
        freshLoaders(context);
        const { nodes, ...rest } = input;
        if (nodes.length > MAX_GRAPH_NODES) {
          throw new InvalidInput([{ path: 'nodes', message: `must not be more than ${MAX_GRAPH_NODES}` }]);
        }
        const requests = nodes.map(({ name, job, dependsOn }) => ({
          name,
          job: toSubmitRequest(job, `nodes.${name}`),
          dependsOn: dependsOn ?? null,
        }));
        return context.graphs.submitGraph(context.caller, { ...rest, nodes: requests });
      }),
  }),
}));
