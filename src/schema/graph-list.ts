import { parseId } from '../core/ids.ts';
import { textProblem } from '../core/json.ts';
import { type GraphFilter, type GraphPosition, listGraphs, totalGraphs } from '../db/reads/graph-list.ts';
import { builder } from './builder.ts';
import { type Connection, connectionType, pageArgs, toConnection } from './connection.ts';
import type { SchemaContext } from './context.ts';
import { PAGE_SIZE } from './cost.ts';
import { JobStateEnum } from './enums.ts';
import {
  badCursor,
  badInput,
  decodeCursor,
  encodeCursor,
  isMoment,
  isStoredId,
  type PageArgs,
  readPageArgs,
} from './paging.ts';
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

const LIST = 'graphs';

function toPosition(cursor: string | null, argument: 'after' | 'before'): GraphPosition | null {
  if (cursor === null) return null;
  const [list, at, id] = decodeCursor(cursor) ?? [];
  if (list !== LIST || !isMoment(at) || !isStoredId(id)) throw badCursor(argument);
  return { at, id };
}

async function graphsPage(
  args: PageArgs & { filter?: typeof GraphFilterInput.$inferInput | null },
  context: SchemaContext,
): Promise<Connection<typeof Graph.$inferType>> {
  const { read, caller } = context;
  const filter = checked(args.filter);
  const request = readPageArgs(args, PAGE_SIZE);
  const [after, before] = [toPosition(request.after, 'after'), toPosition(request.before, 'before')];
  const limit = request.limit + 1;
  const rows = await listGraphs(read, caller.tenant, { filter, after, before, fromEnd: request.fromEnd, limit });
  for (const row of rows) context.loaders.graph.prime(row.id, row);
  return toConnection<typeof Graph.$inferType>(rows, request, {
    cursor: (graph) => encodeCursor([LIST, graph.createdAt, graph.id]),
    totalCount: () => totalGraphs(read, caller.tenant, filter),
    // A cursor is the place of a graph that was there; on the other side of it there is at least that one.
    otherSide: async () => (request.fromEnd ? before !== null : after !== null),
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
