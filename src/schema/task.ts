import { textProblem } from '../core/json.ts';
import { allTasks, type TaskRow, tasksByNames } from '../db/reads/tasks.ts';
import { builder } from './builder.ts';
import { Node } from './node.ts';
import { Worker } from './refs.ts';

export const Task = builder.objectRef<TaskRow>('Task').implement({
  description: 'A named kind of work, as the newest live worker (else the newest of all) registered it.',
  interfaces: [Node],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Its name: what `submitJob` takes.' }),
    description: t.string({
      nullable: true,
      description: 'For people.',
      resolve: ({ definition }) => definition.description,
    }),
    stages: t.stringList({
      description: 'Stages that its progress goes through, in order; empty when it declares none.',
      resolve: ({ definition }) => definition.stages,
    }),
    queue: t.string({
      description: 'Queue of its jobs unless submit says another.',
      resolve: (x) => x.definition.queue,
    }),
    inputSchema: t.field({
      type: 'JSON',
      nullable: true,
      description: 'JSON Schema (draft 2020-12) of its input; null: the worker alone checks.',
      resolve: ({ definition }) => definition.inputSchema,
    }),
    outputSchema: t.field({
      type: 'JSON',
      nullable: true,
      description: 'The same of its result.',
      resolve: ({ definition }) => definition.outputSchema,
    }),
    maxAttempts: t.int({
      description: 'Attempts of a run unless submit says otherwise.',
      resolve: ({ definition }) => definition.maxAttempts,
    }),
    timeout: t.field({
      type: 'Duration',
      nullable: true,
      description: 'Longest time of one attempt; null: none.',
      resolve: ({ definition }) => definition.timeoutMs,
    }),
    stallTimeout: t.field({
      type: 'Duration',
      nullable: true,
      description: 'Longest time without progress or checkpoint; null: none.',
      resolve: ({ definition }) => definition.stallTimeoutMs,
    }),
    workers: t.field({
      type: [Worker],
      description: 'Live workers that can run it.',
      resolve: async ({ name }, _, { loaders }) =>
        (await loaders.workers()).filter((w) => w.state !== 'LOST' && w.tasks.includes(name)),
    }),
  }),
});

builder.queryFields((t) => ({
  tasks: t.field({
    type: [Task],
    description: 'All registered tasks by name.',
    resolve: (_, __, context) => allTasks(context.read),
  }),
  task: t.field({
    type: Task,
    nullable: true,
    description: 'One task; null when nobody has registered it.',
    args: { name: t.arg.string({ required: true, description: 'Its name.' }) },
    resolve: async (_, { name }, context) =>
      textProblem(name) ? null : ((await tasksByNames(context.read, [name]))[0] ?? null),
  }),
}));
