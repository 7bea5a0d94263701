import { MAX_MATCHED } from '../db/reads/bulk.ts';
import { MAX_BULK_JOBS } from '../engine/bulk.ts';
import type { BulkOutcome } from '../engine/bulk-types.ts';
import { builder } from './builder.ts';
import { freshLoaders } from './context.ts';
import { resultType } from './errors.ts';
import { countChanged } from './graph-errors.ts';
import { JobFilterInput, toFilter } from './job-filter.ts';

const count = (n: number) => n.toLocaleString('en-US');

const BulkPayload = builder.objectRef<BulkOutcome>('BulkPayload').implement({
  description: 'What was done. Repeat the call until nothing remains.',
  fields: (t) => ({
    matched: t.exposeInt('matched', {
      description: `Jobs that the filter matches and to which the verb applies, as the call began; counted to ${count(MAX_MATCHED)}.`,
    }),
    changed: t.exposeInt('changed', {
      description:
        'Jobs that this call changed; none with `dryRun`. A job that changed otherwise at this moment is passed over.',
    }),
    remaining: t.exposeInt('remaining', {
      description: `Jobs that are left for the next call: one call does at most ${count(MAX_BULK_JOBS)}.`,
    }),
  }),
});

const BulkResult = resultType('BulkResult', 'What came of `cancelJobs` or `retryJobs`.', BulkPayload, [
  'InvalidInput',
  countChanged,
]);

builder.mutationFields((t) => {
  const filter = t.arg({
    type: JobFilterInput,
    required: true,
    description: 'Which jobs. One in which nothing is given is InvalidInput.',
  });
  const reason = t.arg.string({ description: 'For people, at most 500 characters; kept with each job.' });
  const expectedCount = t.arg.int({
    description: 'Only if as many jobs match (`matched`), else CountChanged and nothing is done.',
  });
  const dryRun = t.arg.boolean({ defaultValue: false, description: 'True: only counts.' });
  return {
    cancelJobs: t.field({
      type: BulkResult.type,
      description: `Cancels all unfinished jobs that match, as \`cancelJob\` does, at most ${count(MAX_BULK_JOBS)} a call. \`{ graphId }\` takes a whole graph with its children. Jobs that were asked to stop before match, but count neither as changed nor as remaining, so a second call does no harm.`,
      args: { filter, reason, expectedCount, dryRun },
      resolve: (_, args, context) =>
        BulkResult.run(() => {
          freshLoaders(context);
          const { filter: given, ...options } = args;
          return context.bulk.cancelJobs(context.caller, toFilter(given), options);
        }),
    }),
    retryJobs: t.field({
      type: BulkResult.type,
      description: `Retries all FAILED and CANCELED jobs that match, as \`retryJob\` does, at most ${count(MAX_BULK_JOBS)} a call; COMPLETED, RETRYING and SCHEDULED ones only where \`filter.states\` names these states. A second call finds those QUEUED that the first one took.`,
      args: {
        filter,
        fromStart: t.arg.boolean({
          defaultValue: false,
          description:
            'Drops the checkpoints; else each job goes on behind its last one. A child that matches together with its parent stays as it is, since the parent submits a new one.',
        }),
        reason,
        expectedCount,
        dryRun,
      },
      resolve: (_, args, context) =>
        BulkResult.run(() => {
          freshLoaders(context);
          const { filter: given, ...options } = args;
          return context.bulk.retryJobs(context.caller, toFilter(given), options);
        }),
    }),
  };
});
