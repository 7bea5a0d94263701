import { parseId } from '../core/ids.ts';
import type { WorkerRow } from '../core/job.ts';
import { builder } from './builder.ts';
import { WorkerStateEnum } from './enums.ts';
import { Node } from './node.ts';
import { Job, Worker } from './refs.ts';

Worker.implement({
  description: 'One start of a worker process. Its id is never used again.',
  interfaces: [Node],
  fields: (t) => ({
    host: t.exposeString('host', { description: 'Name of its machine.' }),
    pid: t.exposeInt('pid', { description: 'Its process id there.' }),
    queues: t.exposeStringList('queues', { description: 'Queues that it serves; empty: all.' }),
    tasks: t.exposeStringList('tasks', { description: 'Tasks that it can run.' }),
    slots: t.exposeInt('slots', { description: 'How many jobs it runs at once.' }),
    busy: t.exposeInt('busy', { description: 'How many of them were in use at its last heartbeat.' }),
    state: t.field({ type: WorkerStateEnum, description: 'Whether it lives.', resolve: (w) => w.state }),
    startedAt: t.field({ type: 'DateTime', description: 'When it started.', resolve: (w) => w.startedAt }),
    heartbeatAt: t.field({ type: 'DateTime', description: 'Its last sign of life.', resolve: (w) => w.heartbeatAt }),
    running: t.field({
      type: [Job],
      description: 'Jobs that it runs now, of the caller’s tenant.',
      resolve: (w, _, context) => context.loaders.runningOf.load(w.id),
    }),
  }),
});

/** Whether a worker takes jobs now. */
export function takesJobs(worker: WorkerRow): boolean {
  return worker.state === 'ACTIVE';
}

/** Whether a worker serves a queue. */
export function serves(worker: WorkerRow, queue: string): boolean {
  return worker.queues.length === 0 || worker.queues.includes(queue);
}

builder.queryFields((t) => ({
  workers: t.field({
    type: [Worker],
    description: 'All workers that are known, the longest running first; lost ones for a while, too.',
    resolve: (_, __, context) => context.loaders.workers(),
  }),
  worker: t.field({
    type: Worker,
    nullable: true,
    description: 'One worker; null when it is unknown or forgotten.',
    args: { id: t.arg.id({ required: true, description: 'Its id (`wrk_…`).' }) },
    resolve: (_, { id }, context) => context.loaders.worker.load(parseId('Worker', id, 'id')),
  }),
}));
