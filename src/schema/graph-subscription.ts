import { parseId } from '../core/ids.ts';
import type { GraphChanged as GraphChangedMessage } from '../engine/live/types.ts';
import { builder } from './builder.ts';
import { sharedLoaders } from './context.ts';
import { GraphNode } from './graph.ts';
import { readInterval } from './interval.ts';
import { Graph } from './refs.ts';

const GraphChanged = builder.objectRef<GraphChangedMessage>('GraphChanged').implement({
  description: 'What somebody who watches a graph has to know.',
  fields: (t) => ({
    graph: t.field({ type: Graph, description: 'The graph as of the same moment.', resolve: (m) => m.graph }),
    nodes: t.field({
      type: [GraphNode],
      description: 'With `reset` all of them, else those that changed since the last message, as they are now.',
      // With the factor of every stream this is what a whole graph costs, which comes in the first message only.
      complexity: { field: 1, multiplier: 100 },
      resolve: (m) => [...m.nodes],
    }),
    reset: t.exposeBoolean('reset', {
      description:
        'Drop what you have: these are all nodes. True in the first message, and again when changes may have been missed.',
    }),
  }),
});

builder.subscriptionFields((t) => ({
  graphProgress: t.field({
    type: GraphChanged,
    description:
      'A graph with all its nodes, then at most one message an interval with those that changed, fact or progress: may skip, never goes back. Completes after the message in which every node is terminal. Errors: NOT_FOUND (unknown, or removed in mid-stream), LIMIT_EXCEEDED.',
    args: {
      id: t.arg.id({ required: true, description: 'The graph (`gra_…`).' }),
      minInterval: t.arg({
        type: 'Duration',
        defaultValue: 250,
        description: 'Shortest time between two messages, 50ms to 1h.',
      }),
      untilTerminal: t.arg.boolean({
        defaultValue: true,
        description: 'False keeps the stream open over later runs of its jobs.',
      }),
    },
    subscribe: (_, args, { live, caller }) =>
      live.graphProgress(caller, parseId('Graph', args.id, 'id'), {
        minIntervalMs: readInterval(args.minInterval),
        untilTerminal: args.untilTerminal ?? true,
      }),
    resolve: (message, _, context) => {
      sharedLoaders(context, message.graph);
      return message;
    },
  }),
}));
