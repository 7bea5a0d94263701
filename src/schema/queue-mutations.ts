import type { QueueRow } from '../core/job.ts';
import { builder } from './builder.ts';
import { freshLoaders, type SchemaContext } from './context.ts';
import { resultType } from './errors.ts';
import { Queue } from './queue.ts';

const QueuePayload = builder.objectRef<{ queue: QueueRow }>('QueuePayload').implement({
  description: 'Done.',
  fields: (t) => ({ queue: t.field({ type: Queue, description: 'The queue as it is now.', resolve: (p) => p.queue }) }),
});

const QueueResult = resultType('QueueResult', 'What came of a change to a queue.', QueuePayload, [
  'NotFound',
  'InvalidInput',
]);

const RateLimitInput = builder.inputType('RateLimitInput', {
  description: 'How many jobs may start in a time, over all workers.',
  fields: (t) => ({
    max: t.int({ required: true, description: 'Starts at most, 1…1,000,000.' }),
    per: t.field({
      type: 'Duration',
      required: true,
      description: 'In this time, from 1ms on, whichever moment it is counted from.',
    }),
  }),
});

/** Runs a verb on a queue. What was read of queues before is out of date. */
function change(context: SchemaContext, verb: () => Promise<QueueRow>) {
  return QueueResult.run(async () => {
    freshLoaders(context);
    return { queue: await verb() };
  });
}

builder.mutationFields((t) => ({
  pauseQueue: t.field({
    type: QueueResult.type,
    description:
      'Keeps the jobs of a queue in line; what runs goes on. A second call answers alike; with another reason this one stands, with who gave it.',
    args: {
      name: t.arg.string({ required: true, description: 'The queue.' }),
      reason: t.arg.string({ description: 'For people, at most 500 characters; shown while it is paused.' }),
    },
    resolve: (_, { name, reason }, context) =>
      change(context, () => context.queues.pause(context.caller, name, { reason: reason ?? null })),
  }),
  resumeQueue: t.field({
    type: QueueResult.type,
    description: 'Lets workers take the jobs of a queue again, at once. A second call answers alike.',
    args: { name: t.arg.string({ required: true, description: 'The queue.' }) },
    resolve: (_, { name }, context) => change(context, () => context.queues.resume(context.caller, name)),
  }),
  updateQueue: t.field({
    type: QueueResult.type,
    description:
      'Sets limits of a queue, over all workers. null lifts a limit, one that is left out stays. It holds for what is claimed from now on: what runs goes on, and starts of before are not counted. A second call changes nothing.',
    args: {
      name: t.arg.string({ required: true, description: 'The queue.' }),
      maxRunning: t.arg.int({ description: 'How many of its jobs may run at once, 1…100,000.' }),
      rateLimit: t.arg({ type: RateLimitInput, description: 'How fast its jobs may start.' }),
    },
    resolve: (_, { name, maxRunning, rateLimit }, context) =>
      change(context, () =>
        context.queues.update(context.caller, name, {
          maxRunning,
          rateLimit: rateLimit && { max: rateLimit.max, perMs: rateLimit.per },
        }),
      ),
  }),
}));
