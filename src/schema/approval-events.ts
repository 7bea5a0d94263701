import { NotFound } from '../core/errors.ts';
import type { JobEvent as JobEventRow } from '../core/event.ts';
import { publicId } from '../core/ids.ts';
import { ApprovalStateEnum, Decision, type DecisionSource } from './approval.ts';
import { builder } from './builder.ts';
import type { SchemaContext } from './context.ts';
import { JobEvent } from './event.ts';
import { Approval } from './refs.ts';

async function approvalOf(event: JobEventRow, { loaders }: SchemaContext) {
  const id = String(event.data.approvalId);
  const approval = await loaders.approval.load(id);
  if (!approval) throw new NotFound('approval', publicId('Approval', id));
  return approval;
}

builder.objectRef<JobEventRow>('ApprovalRequested').implement({
  description: 'The handler asked people.',
  interfaces: [JobEvent],
  fields: (t) => ({
    key: t.string({ description: 'Name of the question within the job.', resolve: (e) => e.data.key ?? '' }),
    title: t.string({ description: 'The question in a line.', resolve: (e) => String(e.data.title ?? '') }),
    approval: t.field({
      type: Approval,
      description: 'The approval as it is now.',
      resolve: (e, _, context) => approvalOf(e, context),
    }),
  }),
});

builder.objectRef<JobEventRow>('ApprovalDecided').implement({
  description: 'Somebody voted, or the time was over.',
  interfaces: [JobEvent],
  fields: (t) => ({
    key: t.string({ description: 'Name of the question within the job.', resolve: (e) => e.data.key ?? '' }),
    decision: t.field({
      type: Decision,
      description: 'The vote.',
      resolve: (e) => e.data.decision as DecisionSource,
    }),
    approvalState: t.field({
      type: ApprovalStateEnum,
      description: 'How the approval stood after it: OPEN while more people must approve.',
      resolve: (e) => e.data.approvalState as typeof ApprovalStateEnum.$inferType,
    }),
    approval: t.field({
      type: Approval,
      description: 'The approval as it is now.',
      resolve: (e, _, context) => approvalOf(e, context),
    }),
  }),
});
