import type { ApprovalRow, Verdict } from '../core/approval.ts';
import { AlreadyDecided, InvalidInput, NotAllowed, NotFound, NotWaiting, StaleApproval } from '../core/errors.ts';
import { parseId, publicId } from '../core/ids.ts';
import type { ApprovalSelector } from '../engine/approval-types.ts';
import { builder } from './builder.ts';
import { freshLoaders, type SchemaContext } from './context.ts';
import { type Refusal, resultType, UserError } from './errors.ts';
import { Approval, Job } from './refs.ts';

async function jobOf(id: string, { loaders }: SchemaContext) {
  const job = await loaders.job.load(id);
  if (!job) throw new NotFound('job', publicId('Job', id));
  return job;
}

async function approvalOf(id: string, { loaders }: SchemaContext) {
  const approval = await loaders.approval.load(id);
  if (!approval) throw new NotFound('approval', publicId('Approval', id));
  return approval;
}

const notWaiting = {
  class: NotWaiting,
  type: builder.objectRef<Refusal<NotWaiting>>('NotWaiting').implement({
    description: 'The job does not wait for an answer.',
    interfaces: [UserError],
    fields: (t) => ({
      job: t.field({
        type: Job,
        description: 'The job as it is.',
        resolve: ({ refused }, _, context) => jobOf(refused.jobId, context),
      }),
    }),
  }),
};

const approvalField = (description: string) => builder.objectRef<Refusal<AlreadyDecided | StaleApproval>>(description);

const alreadyDecided = {
  class: AlreadyDecided,
  type: approvalField('AlreadyDecided').implement({
    description: 'It is decided, or the viewer has decided otherwise before.',
    interfaces: [UserError],
    fields: (t) => ({
      approval: t.field({
        type: Approval,
        description: 'The approval with its decision.',
        resolve: ({ refused }, _, context) => approvalOf(refused.approvalId, context),
      }),
    }),
  }),
};

const staleApproval = {
  class: StaleApproval,
  type: approvalField('StaleApproval').implement({
    description: 'The digest is not that of what is asked now: look again.',
    interfaces: [UserError],
    fields: (t) => ({
      approval: t.field({
        type: Approval,
        description: 'The approval as it is.',
        resolve: ({ refused }, _, context) => approvalOf(refused.approvalId, context),
      }),
    }),
  }),
};

const notAllowed = {
  class: NotAllowed,
  type: builder.objectRef<Refusal<NotAllowed>>('NotAllowed').implement({
    description: 'The viewer may not do that.',
    interfaces: [UserError],
  }),
};

const DecidePayload = builder.objectRef<ApprovalRow>('DecidePayload').implement({
  description: 'The vote is recorded. A second call of the same person with the same verdict is answered alike.',
  fields: (t) => ({
    approval: t.field({ type: Approval, description: 'The approval after it.', resolve: (a) => a }),
    job: t.field({ type: Job, description: 'Its job after it.', resolve: (a, _, context) => jobOf(a.jobId, context) }),
  }),
});

const DecideResult = resultType('DecideResult', 'What came of a decision.', DecidePayload, [
  'NotFound',
  notWaiting,
  alreadyDecided,
  'InvalidInput',
  staleApproval,
  notAllowed,
]);

const DecideInput = builder.inputType('DecideInput', {
  description: 'A decision: exactly one of `approvalId` and `jobId` says about what.',
  fields: (t) => ({
    jobId: t.id({ description: 'The job that waits.' }),
    approvalId: t.id({ description: 'The approval.' }),
    key: t.string({ description: 'With `jobId`: which of its approvals; needed where several are open.' }),
    comment: t.string({ description: 'What to say with it, at most 2,000 characters.' }),
    data: t.field({
      type: 'JSON',
      description: 'The form, filled in, as the approval’s `schema` wants it. A rejection needs none.',
    }),
    digest: t.string({ description: 'The approval’s `digest` as it was shown: refused when that has changed.' }),
  }),
});

/** @throws InvalidInput that names the rule */
function selectorOf({ approvalId, jobId, key }: typeof DecideInput.$inferInput): ApprovalSelector {
  const bad = (path: string, message: string) => new InvalidInput([{ path, message }]);
  if ((approvalId == null) === (jobId == null)) {
    throw bad('approvalId', 'exactly one of approvalId and jobId must be given');
  }
  if (approvalId != null) {
    if (key != null) throw bad('key', 'must be given with jobId only');
    return { approvalId: parseId('Approval', approvalId, 'approvalId') };
  }
  return { jobId: parseId('Job', jobId as string, 'jobId'), key: key ?? null };
}

function decide(input: typeof DecideInput.$inferInput, verdict: Verdict, context: SchemaContext) {
  return DecideResult.run(async () => {
    freshLoaders(context);
    const { comment, data, digest } = input;
    const approval = await context.approvals.decide(context.caller, selectorOf(input), verdict, {
      comment: comment ?? null,
      digest: digest ?? null,
      ...(data === undefined ? {} : { data }),
    });
    freshLoaders(context);
    return approval;
  });
}

builder.mutationFields((t) => {
  const args = { input: t.arg({ type: DecideInput, required: true, description: 'The decision.' }) };
  return {
    approveJob: t.field({
      type: DecideResult.type,
      description: 'Says yes. The job goes on when enough different people have.',
      args,
      resolve: (_, { input }, context) => decide(input, 'APPROVED', context),
    }),
    rejectJob: t.field({
      type: DecideResult.type,
      description: 'Says no, which decides at once.',
      args,
      resolve: (_, { input }, context) => decide(input, 'REJECTED', context),
    }),
  };
});
