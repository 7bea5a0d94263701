import { publicId } from '../core/ids.ts';
import type { AttemptRow } from '../core/job.ts';
import { builder } from './builder.ts';
import { connectionType } from './connection.ts';
import { AttemptOutcomeEnum } from './enums.ts';
import { errorOf, JobError } from './job-parts.ts';

export const Attempt = builder.objectRef<AttemptRow>('Attempt').implement({
  description: 'One claim of a job by one worker.',
  fields: (t) => ({
    number: t.exposeInt('number', { description: '1, 2, 3… over the whole job. It fences what late workers say.' }),
    run: t.exposeInt('run', { description: 'The run that it belongs to.' }),
    outcome: t.field({
      type: AttemptOutcomeEnum,
      nullable: true,
      description: 'How it ended; null while it runs.',
      resolve: (a) => a.outcome,
    }),
    error: t.field({
      type: JobError,
      nullable: true,
      description: 'What went wrong, when something did.',
      resolve: (a) => errorOf(a.jobId, a.error),
    }),
    workerId: t.id({
      description: 'The worker that took it; kept after the worker is gone.',
      resolve: (a) => publicId('Worker', a.workerId),
    }),
    startedAt: t.field({ type: 'DateTime', description: 'When it was claimed.', resolve: (a) => a.startedAt }),
    heartbeatAt: t.field({
      type: 'DateTime',
      description: 'Last sign of life of its worker, while it ran.',
      resolve: (a) => a.heartbeatAt,
    }),
    finishedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it ended; null while it runs.',
      resolve: (a) => a.finishedAt,
    }),
    resumedFrom: t.exposeString('resumedFrom', {
      nullable: true,
      description: 'Key of the last checkpoint that existed when it started: it went on behind it.',
    }),
  }),
});

export const AttemptConnection = connectionType('Attempt', Attempt, 'attempts');
