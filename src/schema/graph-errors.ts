import { CountChanged, GraphIdempotencyConflict, NotFound } from '../core/errors.ts';
import { publicId } from '../core/ids.ts';
import { builder } from './builder.ts';
import { type Refusal, UserError } from './errors.ts';
import { Graph } from './refs.ts';

const GraphIdempotencyConflictType = builder
  .objectRef<Refusal<GraphIdempotencyConflict>>('GraphIdempotencyConflict')
  .implement({
    description: 'The key of the graph was used before, for other nodes, inputs or dependencies.',
    interfaces: [UserError],
    fields: (t) => ({
      graph: t.field({
        type: Graph,
        description: 'The graph that the key stands for.',
        resolve: async ({ refused }, _, { loaders }) => {
          const graph = await loaders.graph.load(refused.graphId);
          if (!graph) throw new NotFound('graph', publicId('Graph', refused.graphId));
          return graph;
        },
      }),
      givenDigest: t.string({
        description: 'sha256 of what was given: names, tasks, inputs and dependencies.',
        resolve: ({ refused }) => refused.givenDigest,
      }),
      storedDigest: t.string({
        description: 'The same of the graph that is there.',
        resolve: ({ refused }) => refused.storedDigest,
      }),
    }),
  });

const CountChangedType = builder.objectRef<Refusal<CountChanged>>('CountChanged').implement({
  description: '`expectedCount` was given, and another number of jobs matches now.',
  interfaces: [UserError],
  fields: (t) => ({
    expected: t.int({ description: 'As given.', resolve: ({ refused }) => refused.expected }),
    actual: t.int({ description: 'How many match.', resolve: ({ refused }) => refused.actual }),
  }),
});

/** Members for the result unions of graphs and of bulk operations. */
export const graphConflict = { class: GraphIdempotencyConflict, type: GraphIdempotencyConflictType };
export const countChanged = { class: CountChanged, type: CountChangedType };
