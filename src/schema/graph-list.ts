import { parseId } from '../core/ids.ts';
import { textProblem } from '../core/json.ts';
import { type GraphFilter, listGraphs, totalGraphs } from '../db/reads/graph-list.ts';
import { builder } from './builder.ts';
import { type Connection, connectionType, pageArgs } from './connection.ts';
import type { SchemaContext } from './context.ts';
import { JobStateEnum } from './enums.ts';
import { momentPage } from './moment-page.ts';
import { badInput, type PageArgs } from './paging.ts';
import { Graph } from './refs.ts';

const GraphConnection = connectionType('Graph', Graph, 'graphs', 'GraphConnectionEdge');

const GraphFilterInput = builder.inputType('GraphFilter', {
  description:
    'Which graphs. Fields are joined by AND; the values of a list by OR. An empty list matches nothing; null is as if not given.',
  fields: (t) => ({
    states: t.field({ type: [JobStateEnum], description: 'Rolled up to one of these states.' }),
    createdAfter: t.field({ type: 'DateTime', description: 'Handed in then or later.' }),
    createdBefore: t.field({ type: 'DateTime', description: 'Handed in before then.' }),
    submittedBy: t.string({ description: 'Handed in by this actor.' }),
    text: t.string({ description: 'Whose id, title or idempotency key begins with this, whatever the case.' }),
  }),
});

/** @throws BAD_USER_INPUT for a text that the store cannot hold */
function checked(given: typeof GraphFilterInput.$inferInput | null | undefined): GraphFilter {
  for (const field of ['submittedBy', 'text'] as const) {
    const problem = given?.[field] == null ? null : textProblem(given[field]);
    if (problem) throw badInput(`filter.${field}`, problem);
  }
  return given ?? {};
}

function graphsPage(
  args: PageArgs & { filter?: typeof GraphFilterInput.$inferInput | null },
  { read, caller, loaders }: SchemaContext,
): Promise<Connection<typeof Graph.$inferType>> {
  const filter = checked(args.filter);
  return momentPage<typeof Graph.$inferType>(args, {
    list: 'graphs',
    at: (graph) => graph.createdAt,
    async read(window) {
      const rows = await listGraphs(read, caller.tenant, { filter, ...window });
      for (const row of rows) loaders.graph.prime(row.id, row);
      return rows;
    },
    total: () => totalGraphs(read, caller.tenant, filter),
  });
}

builder.queryFields((t) => ({
  graph: t.field({
    type: Graph,
    nullable: true,
    description: 'One graph; null when the caller has none of this id.',
    args: { id: t.arg.id({ required: true, description: 'Its id (`gra_…`).' }) },
    resolve: (_, { id }, context) => context.loaders.graph.load(parseId('Graph', id, 'id')),
  }),
  graphs: t.field({
    type: GraphConnection,
    description: 'Graphs, the newest first, page by page. A page neither repeats nor skips any.',
    args: {
      filter: t.arg({ type: GraphFilterInput, description: 'Which; all when left out.' }),
      ...pageArgs(),
    },
    resolve: (_, args, context) => graphsPage(args, context),
  }),
}));
