import type { ApprovalsChanged as ApprovalsChangedMessage } from '../engine/live/types.ts';
import { ApprovalFilterInput, toApprovalFilter } from './approval-list.ts';
import { builder } from './builder.ts';
import { freshLoaders } from './context.ts';
import { Approval } from './refs.ts';

const ApprovalsChanged = builder.objectRef<ApprovalsChangedMessage>('ApprovalsChanged').implement({
  description: 'What a list of approvals has to know.',
  fields: (t) => ({
    approvals: t.field({
      type: [Approval],
      description:
        'Approvals that may have changed since the last message, as they are now, in whatever state: what closes leaves a list of open ones.',
      resolve: (m) => m.approvals,
    }),
    reset: t.exposeBoolean('reset', {
      description:
        'Changes may have been missed: (re)read the list now. True in the first message; `approvals` is empty then.',
    }),
    openCount: t.exposeInt('openCount', { description: 'How many open ones match the filter now.' }),
  }),
});

builder.subscriptionField('approvalsChanged', (t) =>
  t.field({
    type: ApprovalsChanged,
    description:
      'Approvals as they open, are voted on and close; `reset` as in `jobsChanged`. At most four messages a second. Errors: LIMIT_EXCEEDED.',
    args: { filter: t.arg({ type: ApprovalFilterInput, description: 'Which; all when left out.' }) },
    subscribe: (_, { filter }, context) =>
      context.live.approvalsChanged(context.caller, { filter: toApprovalFilter(filter, context) }),
    resolve: (message, _, context) => {
      freshLoaders(context);
      return message;
    },
  }),
);
