import { type Graph, type GraphEdge, type GraphNode, RequestError } from '../client/index.ts';
import { readInsistently } from './reading.ts';
import type { Source } from './shared-streams.ts';

/** A graph as it is shown: all nodes, in the order in which they were given. */
export interface GraphView extends Graph {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
}

export function graphSource(id: string): Source<GraphView> {
  return {
    key: `graph ${id}`,
    async run(out, { client, signal }) {
      const whole = await readInsistently(() => client.graph(id), signal);
      if (!whole) throw new RequestError('NOT_FOUND', `graph ${id} was not found`);
      // Edges never change, and are not sent again.
      const { edges } = whole;
      out.set(whole);
      let known = new Map(whole.nodes.map((node) => [node.name, node]));
      for await (const { graph, nodes, reset } of client.watchGraph(id, { signal, untilTerminal: false })) {
        const before = known;
        if (reset) known = new Map();
        for (const node of nodes) known.set(node.name, newerNode(node, before.get(node.name)));
        out.set({ ...graph, nodes: [...known.values()], edges });
      }
    },
  };
}

function newerNode(node: GraphNode, known: GraphNode | undefined): GraphNode {
  return known && known.job.id === node.job.id && known.job.version > node.job.version ? known : node;
}
