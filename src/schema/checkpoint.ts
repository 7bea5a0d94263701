import type { CheckpointRow, ErrorSample } from '../core/job.ts';
import { builder } from './builder.ts';
import { connectionType } from './connection.ts';
import { CheckpointKindEnum } from './enums.ts';

const ErrorSampleType = builder.objectRef<ErrorSample>('ErrorSample').implement({
  description: 'One bad item of a batch, kept as a sample.',
  fields: (t) => ({
    item: t.field({ type: 'JSON', nullable: true, description: 'The item.', resolve: (s) => s.item }),
    message: t.exposeString('message', { description: 'What was wrong with it.' }),
    attempt: t.exposeInt('attempt', { description: 'The attempt that met it.' }),
    at: t.field({ type: 'DateTime', description: 'When.', resolve: (s) => s.at }),
  }),
});

export const Checkpoint = builder.objectRef<CheckpointRow>('Checkpoint').implement({
  description: 'A named, durable place in a job: a later attempt starts behind it.',
  fields: (t) => ({
    key: t.exposeString('key', { description: 'Its name within the job.' }),
    sequence: t.exposeInt('sequence', {
      description: '`seq` of the event that saved it last: the order within the job.',
    }),
    kind: t.field({ type: CheckpointKindEnum, description: 'What it holds.', resolve: (c) => c.kind }),
    data: t.field({ type: 'JSON', nullable: true, description: 'What was saved.', resolve: (c) => c.data }),
    attempt: t.exposeInt('attempt', { description: 'The attempt that saved it last.' }),
    processed: t.exposeInt('processed', { nullable: true, description: 'Batches: items so far, over all attempts.' }),
    succeeded: t.exposeInt('succeeded', { nullable: true, description: 'Batches: good items so far.' }),
    failed: t.exposeInt('failed', { nullable: true, description: 'Batches: bad items so far.' }),
    errorSamples: t.field({
      type: [ErrorSampleType],
      description: 'Batches: the first bad items, at most 20.',
      resolve: (c) => c.errorSamples,
    }),
    createdAt: t.field({ type: 'DateTime', description: 'First saved.', resolve: (c) => c.createdAt }),
    updatedAt: t.field({ type: 'DateTime', description: 'Last saved.', resolve: (c) => c.updatedAt }),
  }),
});

export const CheckpointConnection = connectionType('Checkpoint', Checkpoint, 'checkpoints');
