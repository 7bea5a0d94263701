import type { DecisionRow } from '../core/approval.ts';
import { APPROVAL_STATES, EXPIRY_POLICIES, VERDICTS } from '../core/approval.ts';
import { NotFound } from '../core/errors.ts';
import { publicId } from '../core/ids.ts';
import { builder } from './builder.ts';
import { Node } from './node.ts';
import { Approval, Job } from './refs.ts';
import { openApprovals, viewerCanDecide } from './reviews.ts';
import { WaitingOn } from './waiting.ts';

export const ApprovalStateEnum = builder.enumType('ApprovalState', {
  description: 'How an approval stands.',
  values: Object.fromEntries(
    APPROVAL_STATES.map((state) => [
      state,
      {
        description: {
          OPEN: 'People may decide.',
          APPROVED: 'Enough people approved.',
          REJECTED: 'Somebody rejected.',
          EXPIRED: 'Nobody decided in time; `onExpire` says what that meant.',
          WITHDRAWN: 'The job ended, or asks anew: nobody waits for the answer.',
        }[state],
      },
    ]),
  ) as Record<(typeof APPROVAL_STATES)[number], { description: string }>,
});

export const VerdictEnum = builder.enumType('Verdict', {
  description: 'What one person said.',
  values: Object.fromEntries(VERDICTS.map((v) => [v, { description: v === 'APPROVED' ? 'Yes.' : 'No.' }])) as Record<
    (typeof VERDICTS)[number],
    { description: string }
  >,
});

const ExpiryPolicyEnum = builder.enumType('ExpiryPolicy', {
  description: 'What happens when nobody decided in time.',
  values: Object.fromEntries(
    EXPIRY_POLICIES.map((policy) => [
      policy,
      {
        description: {
          FAIL: 'The job fails with APPROVAL_EXPIRED.',
          REJECT: 'As if somebody had rejected.',
          APPROVE: 'As if it had been approved, without data.',
        }[policy],
      },
    ]),
  ) as Record<(typeof EXPIRY_POLICIES)[number], { description: string }>,
});

/** One vote, as stored or as an event holds it. */
export type DecisionSource = Omit<DecisionRow, 'approvalId'>;

export const Decision = builder.objectRef<DecisionSource>('Decision').implement({
  description: 'One person’s vote.',
  fields: (t) => ({
    by: t.exposeString('by', { description: 'Who: `user:ada`, or `system:expiry`.' }),
    at: t.field({ type: 'DateTime', description: 'When.', resolve: (d) => d.at }),
    verdict: t.field({ type: VerdictEnum, description: 'Yes or no.', resolve: (d) => d.verdict }),
    comment: t.exposeString('comment', { nullable: true, description: 'What was said with it.' }),
    data: t.field({ type: 'JSON', nullable: true, description: 'The form, filled in.', resolve: (d) => d.data }),
  }),
});

Approval.implement({
  description: 'A question to people, with their decisions.',
  interfaces: [Node],
  fields: (t) => ({
    job: t.field({
      type: Job,
      description: 'The job that asks.',
      resolve: async (a, _, { loaders }) => {
        const job = await loaders.job.load(a.jobId);
        if (!job) throw new NotFound('job', publicId('Job', a.jobId));
        return job;
      },
    }),
    key: t.exposeString('key', { description: 'Its name within the job.' }),
    state: t.field({ type: ApprovalStateEnum, description: 'How it stands.', resolve: (a) => a.state }),
    title: t.exposeString('title', { description: 'The question in a line.' }),
    body: t.exposeString('body', { nullable: true, description: 'Markdown: what there is to be judged.' }),
    schema: t.field({
      type: 'JSON',
      nullable: true,
      description: 'JSON Schema of the data that an approver gives; null: no data is asked for, any is taken.',
      resolve: (a) => a.schema,
    }),
    approvers: t.stringList({
      description: 'Actors (`user:ada`) and groups (`group:editors`); empty: anybody with the right to decide.',
      resolve: (a) => a.approvers,
    }),
    requiredApprovals: t.exposeInt('requiredApprovals', {
      description: 'So many different people must approve; one rejection rejects.',
    }),
    allowSubmitter: t.exposeBoolean('allowSubmitter', {
      description: 'Whether who submitted the job may decide.',
    }),
    decisions: t.field({
      type: [Decision],
      description: 'All votes, the first one first.',
      resolve: (a, _, { loaders }) => loaders.decisions.load(a.id),
    }),
    viewerCanDecide: t.boolean({
      description: 'Whether the viewer may decide now.',
      resolve: (a, _, context) => viewerCanDecide(a, context),
    }),
    requestedAt: t.field({ type: 'DateTime', description: 'Since when it is asked.', resolve: (a) => a.requestedAt }),
    expiresAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'Until when people may decide; null: for ever.',
      resolve: (a) => a.expiresAt,
    }),
    onExpire: t.field({ type: ExpiryPolicyEnum, description: 'What happens then.', resolve: (a) => a.onExpire }),
    version: t.exposeInt('version', { description: 'Grows with every change: drop what is older than what you have.' }),
    digest: t.exposeString('digest', {
      description: 'sha256 of what is shown. A decision that quotes it is refused when that has changed.',
    }),
    decidedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it ceased to be open.',
      resolve: (a) => a.decidedAt,
    }),
    decidedBy: t.exposeString('decidedBy', { nullable: true, description: 'Whose vote decided.' }),
    comment: t.exposeString('comment', { nullable: true, description: 'That vote’s comment.' }),
    data: t.field({ type: 'JSON', nullable: true, description: 'That vote’s data.', resolve: (a) => a.data }),
  }),
});

builder.objectField(Job, 'approvals', (t) =>
  t.field({
    type: [Approval],
    description: 'What it has asked people, over all runs, the first one first.',
    resolve: (job, _, { loaders }) => loaders.approvalsOf.load(job.id),
  }),
);

builder.objectField(WaitingOn, 'approvals', (t) =>
  t.field({
    type: [Approval],
    description: 'All that are open.',
    // Also a job in line may still have open ones, when another of its questions was answered.
    resolve: ({ job }, _, context) => openApprovals(job, context),
  }),
);
