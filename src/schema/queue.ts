import type { QueueRow } from '../core/job.ts';
import { textProblem } from '../core/json.ts';
import { allQueues, queuesByNames } from '../db/reads/queues.ts';
import { builder } from './builder.ts';
import type { SchemaContext } from './context.ts';
import { Node } from './node.ts';
import { Worker } from './refs.ts';
import { allStates, StateCount } from './state-count.ts';
import { serves, takesJobs } from './worker.ts';

const RateLimit = builder.objectRef<{ max: number; perMs: number }>('RateLimit').implement({
  description: 'How many jobs may start in a time, over all workers.',
  fields: (t) => ({
    max: t.exposeInt('max', { description: 'Starts at most.' }),
    per: t.field({ type: 'Duration', description: 'In this time.', resolve: (r) => r.perMs }),
  }),
});

export const Queue = builder.objectRef<QueueRow>('Queue').implement({
  description: 'A named line of jobs. It exists once a task, a worker or a job has named it.',
  interfaces: [Node],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Its name.' }),
    paused: t.exposeBoolean('paused', { description: 'Whether its jobs stay in line. What runs goes on.' }),
    pausedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'Since when it is paused.',
      resolve: (q) => q.pausedAt,
    }),
    pausedBy: t.exposeString('pausedBy', { nullable: true, description: 'Who paused it.' }),
    pauseReason: t.exposeString('pauseReason', { nullable: true, description: 'Why, as given.' }),
    starved: t.boolean({
      description: 'Whether work waits, it is not paused, and no live worker takes some of it.',
      resolve: (q, _, context) => isStarved(q, context),
    }),
    counts: t.field({
      type: [StateCount],
      description: 'Jobs of the caller’s tenant in it, per state.',
      resolve: async (q, _, { loaders }) => allStates((await loaders.counters()).filter((c) => c.queue === q.name)),
    }),
    oldestQueuedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'Since when the longest waiting job is in line; null when none is.',
      resolve: (q, _, { loaders }) => loaders.oldestQueued.load(q.name),
    }),
    maxRunning: t.exposeInt('maxRunning', {
      nullable: true,
      description: 'How many of its jobs may run at once, over all workers; null: no limit.',
    }),
    rateLimit: t.field({
      type: RateLimit,
      nullable: true,
      description: 'How fast its jobs may start; null: no limit.',
      resolve: (q) =>
        q.rateLimitMax === null || q.rateLimitPerMs === null ? null : { max: q.rateLimitMax, perMs: q.rateLimitPerMs },
    }),
    workers: t.field({
      type: [Worker],
      description: 'Live workers that serve it.',
      resolve: async (q, _, { loaders }) =>
        (await loaders.workers()).filter((w) => w.state !== 'LOST' && serves(w, q.name)),
    }),
  }),
});

async function isStarved(queue: QueueRow, { loaders }: SchemaContext): Promise<boolean> {
  if (queue.paused) return false;
  const [counters, workers] = await Promise.all([loaders.counters(), loaders.workers()]);
  const takers = workers.filter((w) => takesJobs(w) && serves(w, queue.name));
  return counters
    .filter((c) => c.queue === queue.name && c.state === 'QUEUED')
    .some((c) => !takers.some((w) => w.tasks.includes(c.task)));
}

builder.queryFields((t) => ({
  queues: t.field({
    type: [Queue],
    description: 'All queues by name.',
    resolve: (_, __, context) => allQueues(context.read),
  }),
  queue: t.field({
    type: Queue,
    nullable: true,
    description: 'One queue; null when nothing has named it.',
    args: { name: t.arg.string({ required: true, description: 'Its name.' }) },
    resolve: async (_, { name }, context) =>
      textProblem(name) ? null : ((await queuesByNames(context.read, [name]))[0] ?? null),
  }),
}));
