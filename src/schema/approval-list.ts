import { parseId } from '../core/ids.ts';
import { textProblem } from '../core/json.ts';
import {
  APPROVAL_ORDERS,
  type ApprovalFilter,
  type ApprovalOrder,
  countApprovals,
  type ListedApproval,
  listApprovals,
} from '../db/reads/approval-list.ts';
import { ApprovalStateEnum } from './approval.ts';
import { builder } from './builder.ts';
import { type Connection, connectionType, pageArgs } from './connection.ts';
import type { SchemaContext } from './context.ts';
import { momentPage } from './moment-page.ts';
import { badInput, type PageArgs } from './paging.ts';
import { Approval } from './refs.ts';

const ApprovalConnection = connectionType('Approval', Approval, 'approvals');

const ApprovalOrderEnum = builder.enumType('ApprovalOrder', {
  description: 'Order of a list of approvals.',
  values: {
    REQUESTED_ASC: { description: 'Who waits longest comes first.' },
    REQUESTED_DESC: { description: 'The newest first.' },
    EXPIRES_ASC: { description: 'Most urgent first; those that never expire come last.' },
  },
});

export const ApprovalFilterInput = builder.inputType('ApprovalFilter', {
  description: 'Which approvals. Fields are joined by AND; null is as if not given.',
  fields: (t) => ({
    states: t.field({ type: [ApprovalStateEnum], description: 'In one of these; an empty list matches nothing.' }),
    jobId: t.id({ description: 'Of this job.' }),
    graphId: t.id({ description: 'Of the jobs of this graph.' }),
    viewerCanDecide: t.boolean({ description: 'That the viewer may decide now (true), or may not (false).' }),
    decidedBy: t.string({ description: 'In which this actor has voted.' }),
  }),
});

/** The filter in stored form. @throws BAD_USER_INPUT */
export function toApprovalFilter(
  given: typeof ApprovalFilterInput.$inferInput | null | undefined,
  { caller }: SchemaContext,
): ApprovalFilter {
  const { states, jobId, graphId, viewerCanDecide: can, decidedBy } = given ?? {};
  const problem = decidedBy == null ? null : textProblem(decidedBy);
  if (problem) throw badInput('filter.decidedBy', problem);
  return {
    states: states ?? null,
    jobId: jobId == null ? null : parseId('Job', jobId, 'filter.jobId'),
    graphId: graphId == null ? null : parseId('Graph', graphId, 'filter.graphId'),
    viewer: can == null ? null : { can, actor: caller.actor, groups: caller.groups },
    decidedBy: decidedBy ?? null,
  };
}

function approvalsPage(
  args: PageArgs & { filter?: typeof ApprovalFilterInput.$inferInput | null; orderBy?: ApprovalOrder | null },
  context: SchemaContext,
): Promise<Connection<typeof Approval.$inferType>> {
  const { read, caller } = context;
  const filter = toApprovalFilter(args.filter, context);
  const order = args.orderBy ?? 'REQUESTED_ASC';
  return momentPage<ListedApproval>(args, {
    list: `approvals ${order}`,
    at: (row) => row.listKey,
    read: (window) => listApprovals(read, caller.tenant, { filter, order, ...window }),
    total: () => countApprovals(read, caller.tenant, filter),
  });
}

builder.queryFields((t) => ({
  approval: t.field({
    type: Approval,
    nullable: true,
    description: 'One approval; null when the caller has none of this id.',
    args: { id: t.arg.id({ required: true, description: 'Its id (`apr_…`).' }) },
    resolve: (_, { id }, { loaders }) => loaders.approval.load(parseId('Approval', id, 'id')),
  }),
  approvals: t.field({
    type: ApprovalConnection,
    description: 'Approvals page by page. Mine, most urgent first: `viewerCanDecide: true`, `EXPIRES_ASC`.',
    args: {
      filter: t.arg({
        type: ApprovalFilterInput,
        defaultValue: { states: ['OPEN'] },
        description: 'Which; the open ones when left out.',
      }),
      orderBy: t.arg({ type: ApprovalOrderEnum, defaultValue: APPROVAL_ORDERS[0], description: 'In which order.' }),
      ...pageArgs(),
    },
    resolve: (_, args, context) => approvalsPage(args, context),
  }),
}));
