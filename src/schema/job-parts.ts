import type { JobErrorData } from '../core/event.ts';
import type { JobRow } from '../core/job.ts';
import { type ProgressState, progressEta, progressFraction } from '../core/progress.ts';
import { builder } from './builder.ts';

export const Progress = builder.objectRef<ProgressState>('Progress').implement({
  description: 'A gauge: where are we, how far, what next. The latest report of the handler; all of it is optional.',
  fields: (t) => ({
    stage: t.exposeString('stage', { nullable: true, description: 'Name of the stage at work.' }),
    stageIndex: t.exposeInt('stageIndex', {
      nullable: true,
      description: 'Its place among the task’s stages, from 0; null when the task declares none.',
    }),
    stageCount: t.exposeInt('stageCount', { nullable: true, description: 'How many stages the task declares.' }),
    nextStage: t.exposeString('nextStage', { nullable: true, description: 'Name of the stage behind it.' }),
    current: t.exposeFloat('current', { nullable: true, description: 'How much of this stage is done, in `unit`.' }),
    total: t.exposeFloat('total', { nullable: true, description: 'How much there is, in `unit`, when it is known.' }),
    unit: t.exposeString('unit', { nullable: true, description: 'What is counted: `rows`, `MB`.' }),
    message: t.exposeString('message', { nullable: true, description: 'One line for people.' }),
    fraction: t.float({
      nullable: true,
      description: '0…1 when `total` is known.',
      resolve: (p) => progressFraction(p),
    }),
    ratePerSecond: t.exposeFloat('ratePerSecond', {
      nullable: true,
      description: '`unit` per second, measured over the recent past.',
    }),
    etaSeconds: t.float({
      nullable: true,
      description: 'Seconds until `total` at that rate; null when unknown.',
      resolve: (p) => progressEta(p),
    }),
    data: t.field({
      type: 'JSON',
      nullable: true,
      description: 'Whatever else the handler reports, at most 16 kB of JSON.',
      resolve: (p) => p.data,
    }),
    updatedAt: t.field({
      type: 'DateTime',
      description: 'When the handler reported it, by its worker’s clock.',
      resolve: (p) => p.updatedAt,
    }),
  }),
});

/** A recorded error. Jobs and events keep it without its stack, which is with the attempt. */
export interface JobErrorSource {
  jobId: string;
  data: JobErrorData;
}

export const JobError = builder.objectRef<JobErrorSource>('JobError').implement({
  description: 'How an attempt failed.',
  fields: (t) => ({
    code: t.string({
      description:
        'For programs: TIMEOUT, STALLED, NOT_ADVANCING, POISON, INVALID_INPUT, INVALID_OUTPUT, RESULT_NOT_JSON, RESULT_TOO_LARGE, CHILD_FAILED, DEPENDENCY_FAILED, APPROVAL_REJECTED, APPROVAL_EXPIRED, else the `code` or name of what the handler threw.',
      resolve: (e) => e.data.code,
    }),
    message: t.string({ description: 'For people, cut when it is very long.', resolve: (e) => e.data.message }),
    retryable: t.boolean({
      description: 'Whether another attempt may follow, budget permitting.',
      resolve: (e) => e.data.retryable,
    }),
    stack: t.string({
      nullable: true,
      description: 'Stack trace of the handler’s error, where there was one and it is still kept.',
      resolve: async ({ jobId, data }, _, context) => {
        if (data.stack != null) return data.stack;
        const full = await context.loaders.attemptError.load({ jobId, number: data.attempt });
        return full?.stack ?? null;
      },
    }),
    attempt: t.int({ description: 'Number of the attempt.', resolve: (e) => e.data.attempt }),
    at: t.field({ type: 'DateTime', description: 'When it happened.', resolve: (e) => e.data.at }),
  }),
});

/** An error as a source of `JobError`, or null. */
export function errorOf(jobId: string, data: JobErrorData | null | undefined): JobErrorSource | null {
  return data ? { jobId, data } : null;
}

export const Cancellation = builder.objectRef<JobRow>('Cancellation').implement({
  description: 'The ladder of a cancel: requested, delivered to the handler, stopped.',
  fields: (t) => ({
    requestedAt: t.field({
      type: 'DateTime',
      description: 'When somebody asked for it, or what it depends on did not complete.',
      resolve: (job) => job.cancelRequestedAt ?? job.finishedAt ?? job.changedAt,
    }),
    requestedBy: t.string({
      nullable: true,
      description: 'Who asked: an actor such as `user:ada`; null when nobody did.',
      resolve: (job) => job.cancelRequestedBy,
    }),
    reason: t.string({
      nullable: true,
      description: 'Why, as given; names the job that it depends on when that is why.',
      resolve: (job) => job.cancelReason,
    }),
    deliveredAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the abort signal fired in the handler; null when it never had to.',
      resolve: (job) => job.cancelDeliveredAt,
    }),
    stoppedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the job became CANCELED; stays null when the handler completed all the same.',
      // Nobody was asked to stop a job that never ran: it was canceled at once.
      resolve: (job) => job.cancelStoppedAt ?? (job.cancelRequestedAt === null ? job.finishedAt : null),
    }),
    forced: t.boolean({
      description: 'Whether the handler had to be given up past the grace time.',
      resolve: (job) => job.cancelForced,
    }),
  }),
});
