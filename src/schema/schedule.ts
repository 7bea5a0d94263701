import { nextRuns } from '../core/cron.ts';
import { toIso } from '../core/job.ts';
import { textProblem } from '../core/json.ts';
import type { ScheduleRow } from '../core/schedule.ts';
import { allSchedules, databaseTime, scheduleByName } from '../db/reads/schedules.ts';
import { builder } from './builder.ts';
import type { SchemaContext } from './context.ts';
import { PAGE_SIZE } from './cost.ts';
import { OverlapPolicyEnum } from './enums.ts';
import { Node } from './node.ts';
import { badInput } from './paging.ts';
import { Job, Schedule } from './refs.ts';

const taskOf = async ({ task }: ScheduleRow, { loaders }: SchemaContext) =>
  (await loaders.taskNamed.load(task))?.definition ?? null;

Schedule.implement({
  description:
    'Hands in a job at the times of a cron expression. Each time gives one job, however many processes there are; times that were missed while none ran are one. What is not given is as the task says now.',
  interfaces: [Node],
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Its name: what its mutations take.' }),
    task: t.exposeString('task', { description: 'Task of its jobs.' }),
    input: t.field({
      type: 'JSON',
      nullable: true,
      description: 'Input of its jobs; null also when none is given.',
      resolve: (s) => s.input,
    }),
    cron: t.exposeString('cron', {
      description:
        'As given. One that names hours runs once where clocks are changed: when a time comes first, or right after the gap. One of every hour goes by the time that passes.',
    }),
    overlap: t.field({
      type: OverlapPolicyEnum,
      description: 'What happens when it is due while its last job is unfinished.',
      resolve: (s) => s.overlap,
    }),
    title: t.string({
      description: 'Title of its jobs: as given, else the task’s name.',
      resolve: (s) => s.options.title ?? s.task,
    }),
    queue: t.string({
      description: 'Queue of its jobs.',
      resolve: async (s, _, context) => s.options.queue ?? (await taskOf(s, context))?.queue ?? 'default',
    }),
    priority: t.int({
      description: 'Priority of its jobs.',
      resolve: async (s, _, context) => s.options.priority ?? (await taskOf(s, context))?.priority ?? 0,
    }),
    tags: t.stringList({ description: 'Tags of its jobs.', resolve: (s) => s.options.tags }),
    maxAttempts: t.int({
      description: 'Budget of attempts of its jobs.',
      resolve: async (s, _, context) => s.options.maxAttempts ?? (await taskOf(s, context))?.maxAttempts ?? 1,
    }),
    timeout: t.field({
      type: 'Duration',
      nullable: true,
      description: 'Longest time of one attempt; null: none.',
      resolve: async (s, _, context) => s.options.timeoutMs ?? (await taskOf(s, context))?.timeoutMs ?? null,
    }),
    concurrencyKey: t.string({
      nullable: true,
      description: 'Of jobs with the same key one at a time is run.',
      resolve: (s) => s.options.concurrencyKey,
    }),
    timezone: t.exposeString('timezone', { description: 'Where its hours are read: `Europe/Berlin`.' }),
    enabled: t.exposeBoolean('enabled', { description: 'Whether it runs by itself.' }),
    nextRunAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it is due; null while it is disabled.',
      resolve: (s) => s.nextRunAt,
    }),
    lastRunAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When it handed in its last job, by itself or by `runSchedule`.',
      resolve: (s) => s.lastRunAt,
    }),
    lastJob: t.field({
      type: Job,
      nullable: true,
      description: 'That job; null before the first, and once it is removed.',
      resolve: (s, _, { loaders }) => (s.lastJobId === null ? null : loaders.job.load(s.lastJobId)),
    }),
    upcoming: t.field({
      type: ['DateTime'],
      description: 'Its next times; none while it is disabled.',
      args: { first: t.arg.int({ defaultValue: 10, description: `At most so many, up to ${PAGE_SIZE.max}.` }) },
      resolve: (s, { first }, context) => upcoming(s, first ?? 10, context),
    }),
  }),
});

/** The time that it is due at, which may be past, and those behind it. */
async function upcoming(s: ScheduleRow, first: number, { read }: SchemaContext): Promise<string[]> {
  if (first < 0 || first > PAGE_SIZE.max) throw badInput('first', `must be from 0 to ${PAGE_SIZE.max}, not ${first}`);
  if (s.nextRunAt === null || first === 0) return [];
  const from = Math.max(Date.parse(toIso(s.nextRunAt)), Date.parse(toIso(await databaseTime(read))));
  const later = nextRuns(s.cron, s.timezone, new Date(from), first - 1);
  return [s.nextRunAt, ...later.map((run) => run.toISOString())];
}

builder.queryFields((t) => ({
  schedules: t.field({
    type: [Schedule],
    description: 'All schedules by name.',
    resolve: (_, __, context) => allSchedules(context.read, context.caller.tenant),
  }),
  schedule: t.field({
    type: Schedule,
    nullable: true,
    description: 'One schedule; null when there is none of this name.',
    args: { name: t.arg.string({ required: true, description: 'Its name.' }) },
    resolve: (_, { name }, context) =>
      textProblem(name) ? null : scheduleByName(context.read, context.caller.tenant, name),
  }),
}));
