import type { ApprovalRow } from '../core/approval.ts';
import type { GraphRow } from '../core/graph.ts';
import { type IdKind, parseAnyId, publicId } from '../core/ids.ts';
import type { JobRow, QueueRow, WorkerRow } from '../core/job.ts';
import type { ScheduleRow } from '../core/schedule.ts';
import type { TaskRow } from '../db/reads/tasks.ts';
import { builder } from './builder.ts';
import type { SchemaContext } from './context.ts';
import { PAGE_SIZE } from './cost.ts';
import { badInput } from './paging.ts';

type NodeRow = ApprovalRow | GraphRow | JobRow | WorkerRow | QueueRow | ScheduleRow | TaskRow;

/** Rows carry no type name. What tells them apart is a field that only one of them has. */
function kindOf(row: NodeRow): IdKind {
  if ('onExpire' in row) return 'Approval';
  if ('lastSeq' in row) return 'Job';
  if ('slots' in row) return 'Worker';
  if ('cron' in row) return 'Schedule';
  if ('edges' in row) return 'Graph';
  return 'definition' in row ? 'Task' : 'Queue';
}

export const Node = builder.interfaceRef<NodeRow>('Node').implement({
  description: 'Something with an id of its own.',
  resolveType: (row) => kindOf(row as NodeRow),
  fields: (t) => ({
    id: t.id({
      description: 'Prefixed (`job_…`), sortable by age, the same in every place of the API. Never used again.',
      resolve: (row) => publicId(kindOf(row), row.id),
    }),
  }),
});

async function load(context: SchemaContext, id: string, argument: string): Promise<NodeRow | null> {
  const { kind, uuid } = parseAnyId(id, argument);
  const { loaders } = context;
  switch (kind) {
    case 'Job':
      return loaders.job.load(uuid);
    case 'Graph':
      return loaders.graph.load(uuid);
    case 'Worker':
      return loaders.worker.load(uuid);
    case 'Schedule':
      return loaders.schedule.load(uuid);
    case 'Queue':
      return loaders.queue.load(uuid);
    case 'Task':
      return loaders.task.load(uuid);
    case 'Approval':
      return loaders.approval.load(uuid);
  }
}

builder.queryFields((t) => ({
  node: t.field({
    type: Node,
    nullable: true,
    description: 'Whatever has this id; null when nothing (that the caller may see) has it.',
    args: { id: t.arg.id({ required: true, description: 'Any id that the API gave.' }) },
    resolve: (_, { id }, context) => load(context, id, 'id'),
  }),
  nodes: t.field({
    type: [Node],
    nullable: { list: false, items: true },
    description: 'The same for many ids, in their order; null where nothing has the id.',
    args: { ids: t.arg.idList({ required: true, description: `At most ${PAGE_SIZE.max} ids that the API gave.` }) },
    resolve: (_, { ids }, context) => {
      if (ids.length > PAGE_SIZE.max) throw badInput('ids', `must not be more than ${PAGE_SIZE.max}`);
      return Promise.all(ids.map((id, i) => load(context, id, `ids[${i}]`)));
    },
  }),
}));
