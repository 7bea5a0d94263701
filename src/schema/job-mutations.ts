import { InvalidInput, NotFound, Unavailable } from '../core/errors.ts';
import { parseId } from '../core/ids.ts';
import type { JobRow } from '../core/job.ts';
import type { Submitted as EngineSubmitted } from '../engine/types.ts';
import { builder } from './builder.ts';
import { freshLoaders, type SchemaContext } from './context.ts';
import { MAX_BULK } from './cost.ts';
import { resultType } from './errors.ts';
import { Job } from './refs.ts';
import { SubmitJobInput, toSubmitRequest } from './submit-input.ts';

type Submitted = Pick<EngineSubmitted, 'jobId' | 'deduplicated' | 'job'>;

const SubmitJobPayload = builder.objectRef<Submitted>('SubmitJobPayload').implement({
  description: 'The job is accepted and will not be lost.',
  fields: (t) => ({
    job: t.field({
      type: Job,
      description: 'The job: new, or the one that the key stands for.',
      resolve: async (submitted, _, { loaders }) => {
        const job = submitted.job ?? (await loaders.job.load(submitted.jobId));
        if (!job) throw new Unavailable('the job was accepted but cannot be read now');
        return job;
      },
    }),
    deduplicated: t.exposeBoolean('deduplicated', {
      description: 'Whether the key stood for this job already, so that nothing new was made.',
    }),
  }),
});

const SubmitJobsPayload = builder.objectRef<{ results: Submitted[] }>('SubmitJobsPayload').implement({
  description: 'All jobs are accepted.',
  fields: (t) => ({
    results: t.field({ type: [SubmitJobPayload], description: 'In the order of `inputs`.', resolve: (p) => p.results }),
  }),
});

function jobPayload(name: string, description: string) {
  return builder.objectRef<{ job: JobRow }>(name).implement({
    description,
    fields: (t) => ({ job: t.field({ type: Job, description: 'The job as it is now.', resolve: (p) => p.job }) }),
  });
}

export const SubmitJobResult = resultType('SubmitJobResult', 'What came of `submitJob`.', SubmitJobPayload, [
  'InvalidInput',
  'UnknownTask',
  'IdempotencyConflict',
  'PayloadTooLarge',
  'NotFound',
]);
const SubmitJobsResult = resultType(
  'SubmitJobsResult',
  'What came of `submitJobs`: all of it, or the first error and nothing.',
  SubmitJobsPayload,
  ['InvalidInput', 'UnknownTask', 'IdempotencyConflict', 'PayloadTooLarge', 'NotFound'],
);
const CancelJobResult = resultType(
  'CancelJobResult',
  'What came of `cancelJob`.',
  jobPayload(
    'CancelJobPayload',
    'CANCELED at once, or RUNNING with `cancellation` set until its worker has stopped it.',
  ),
  ['NotFound', 'InvalidTransition'],
);
const RetryJobResult = resultType(
  'RetryJobResult',
  'What came of `retryJob`.',
  jobPayload('RetryJobPayload', 'The job is in line again.'),
  ['NotFound', 'InvalidTransition', 'InvalidInput'],
);
const RunJobNowResult = resultType(
  'RunJobNowResult',
  'What came of `runJobNow`.',
  jobPayload('RunJobNowPayload', 'The job is in line.'),
  ['NotFound', 'InvalidTransition'],
);

const CancelJobInput = builder.inputType('CancelJobInput', {
  description: 'Which job to cancel, and why.',
  fields: (t) => ({
    id: t.id({ required: true, description: 'The job.' }),
    reason: t.string({ description: 'For people, at most 500 characters; kept with the job.' }),
    expectedRun: t.int({ description: 'Only if the job is still in this run, else InvalidTransition.' }),
    cascade: t.boolean({
      defaultValue: true,
      description:
        'Whether its unfinished children are canceled with it. Jobs that depend on it go by the policy of their dependency in any case.',
    }),
  }),
});

const RetryJobInput = builder.inputType('RetryJobInput', {
  description: 'Which job to retry, and from where.',
  fields: (t) => ({
    id: t.id({ required: true, description: 'The job.' }),
    expectedRun: t.int({ description: 'Only if the job is still in this run, else InvalidTransition.' }),
    fromStart: t.boolean({
      defaultValue: false,
      description:
        'Drops the checkpoints; else it goes on behind the last one. Children of the old ones that still run are canceled, unless their idempotency key leads to them again. Not with `fromCheckpoint`.',
    }),
    fromCheckpoint: t.string({ description: 'Drops the checkpoint of this key and all that were saved after it.' }),
    reason: t.string({ description: 'For people, at most 500 characters; kept in the events.' }),
  }),
});

const RunJobNowInput = builder.inputType('RunJobNowInput', {
  description: 'Which job to run now.',
  fields: (t) => ({ id: t.id({ required: true, description: 'The job.' }) }),
});

/**
 * Runs a verb on the job of a public id. An id that is none is a top-level error; one that nothing has is data, with
 * the id as it was given.
 */
async function onJob(
  context: SchemaContext,
  id: string,
  verb: (storedId: string) => Promise<JobRow>,
): Promise<{ job: JobRow }> {
  freshLoaders(context);
  const storedId = parseId('Job', id, 'input.id');
  try {
    const job = await verb(storedId);
    context.loaders.job.prime(job.id, job);
    return { job };
  } catch (error) {
    throw error instanceof NotFound ? new NotFound('job', id) : error;
  }
}

builder.mutationFields((t) => ({
  submitJob: t.field({
    type: SubmitJobResult.type,
    description:
      'Hands in a job and answers at once; workers do it later. Without a key a second call makes a second job.',
    args: { input: t.arg({ type: SubmitJobInput, required: true, description: 'The job.' }) },
    resolve: (_, { input }, context) =>
      SubmitJobResult.run(() => {
        freshLoaders(context);
        return context.jobs.submit(context.caller, toSubmitRequest(input));
      }),
  }),
  submitJobs: t.field({
    type: SubmitJobsResult.type,
    description: 'Hands in many jobs: all or nothing, in order. Errors say which by `path`: `inputs[17]`.',
    args: { inputs: t.arg({ type: [SubmitJobInput], required: true, description: `The jobs, at most ${MAX_BULK}.` }) },
    complexity: ({ inputs }) => ({ field: 1, multiplier: Math.min(Math.max(inputs.length, 1), MAX_BULK) }),
    resolve: (_, { inputs }, context) =>
      SubmitJobsResult.run(async () => {
        freshLoaders(context);
        if (inputs.length > MAX_BULK) {
          throw new InvalidInput([{ path: 'inputs', message: `must not be more than ${MAX_BULK}` }]);
        }
        const requests = inputs.map((input, i) => toSubmitRequest(input, `inputs[${i}]`));
        return { results: await context.jobs.submitMany(context.caller, requests) };
      }),
  }),
  cancelJob: t.field({
    type: CancelJobResult.type,
    description:
      'Cancels a job: at once while it waits; while it runs its worker stops it. A second call answers alike.',
    args: { input: t.arg({ type: CancelJobInput, required: true, description: 'Which job.' }) },
    resolve: (_, { input }, context) =>
      CancelJobResult.run(() => onJob(context, input.id, (id) => context.jobs.cancel(context.caller, id, input))),
  }),
  retryJob: t.field({
    type: RetryJobResult.type,
    description:
      'A finished job opens its next run; a RETRYING or SCHEDULED one becomes due now; any other is InvalidTransition. A second call finds it QUEUED: give `expectedRun` to tell a press twice from a new wish.',
    args: { input: t.arg({ type: RetryJobInput, required: true, description: 'Which job.' }) },
    resolve: (_, { input }, context) =>
      RetryJobResult.run(() => onJob(context, input.id, (id) => context.jobs.retry(context.caller, id, input))),
  }),
  runJobNow: t.field({
    type: RunJobNowResult.type,
    description: 'A SCHEDULED or RETRYING job becomes due now. A second call is InvalidTransition.',
    args: { input: t.arg({ type: RunJobNowInput, required: true, description: 'Which job.' }) },
    resolve: (_, { input }, context) =>
      RunJobNowResult.run(() => onJob(context, input.id, (id) => context.jobs.runNow(context.caller, id))),
  }),
}));
