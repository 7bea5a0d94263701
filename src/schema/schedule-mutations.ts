import type { ScheduleRow } from '../core/schedule.ts';
import type { ScheduleRequest } from '../engine/schedule-types.ts';
import { builder } from './builder.ts';
import { freshLoaders } from './context.ts';
import { OverlapPolicyEnum } from './enums.ts';
import { resultType } from './errors.ts';
import { SubmitJobResult } from './job-mutations.ts';
import { Schedule } from './refs.ts';

const ScheduleInput = builder.inputType('ScheduleInput', {
  description: 'A schedule, whole: what is left out is as its task says, and not as it was before.',
  fields: (t) => ({
    name: t.string({ required: true, description: 'Its name, at most 100 characters.' }),
    task: t.string({ required: true, description: 'Name of a registered task.' }),
    input: t.field({
      type: 'JSON',
      description:
        'What the handlers of its jobs are given, by the task’s input schema, which checks it now and each time.',
    }),
    cron: t.string({
      required: true,
      description:
        'Minute, hour, day of month, month, day of week: `30 2 * * MON-FRI`; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.',
    }),
    timezone: t.string({ defaultValue: 'UTC', description: 'Where its hours are read, of the IANA database.' }),
    enabled: t.boolean({ defaultValue: true, description: 'Whether it runs by itself.' }),
    overlap: t.field({
      type: OverlapPolicyEnum,
      defaultValue: 'SKIP',
      description: 'What happens when it is due while its last job is unfinished.',
    }),
    title: t.string({ description: 'Title of its jobs, at most 200 characters. Default: the task’s name.' }),
    queue: t.string({ description: 'Queue of its jobs.' }),
    priority: t.int({ description: '−100…100; higher goes first.' }),
    tags: t.stringList({ description: 'Tags of its jobs, at most 20.' }),
    maxAttempts: t.int({ description: 'Budget of attempts, 1…1000.' }),
    timeout: t.field({ type: 'Duration', description: 'Longest time of one attempt.' }),
    concurrencyKey: t.string({ description: 'Of jobs with the same key one at a time is run.' }),
  }),
});

const SaveScheduleResult = resultType(
  'SaveScheduleResult',
  'What came of `saveSchedule`.',
  builder.objectRef<{ schedule: ScheduleRow }>('SaveSchedulePayload').implement({
    description: 'Saved.',
    fields: (t) => ({
      schedule: t.field({ type: Schedule, description: 'The schedule as it is now.', resolve: (p) => p.schedule }),
    }),
  }),
  ['InvalidInput', 'UnknownTask'],
);

const DeleteScheduleResult = resultType(
  'DeleteScheduleResult',
  'What came of `deleteSchedule`.',
  builder.objectRef<{ name: string }>('DeleteSchedulePayload').implement({
    description: 'Removed.',
    fields: (t) => ({ name: t.exposeString('name', { description: 'Its name, which is free again.' }) }),
  }),
  ['NotFound'],
);

function toScheduleRequest({ timeout, ...given }: typeof ScheduleInput.$inferInput): ScheduleRequest {
  return { ...given, timeoutMs: timeout ?? null };
}

builder.mutationFields((t) => ({
  saveSchedule: t.field({
    type: SaveScheduleResult.type,
    description:
      'Makes a schedule, or replaces the one of its name, which keeps its id. A second call changes nothing. Its next time stays unless cron or time zone change.',
    args: { input: t.arg({ type: ScheduleInput, required: true, description: 'The schedule.' }) },
    resolve: (_, { input }, context) =>
      SaveScheduleResult.run(async () => {
        freshLoaders(context);
        return { schedule: await context.schedules.save(context.caller, toScheduleRequest(input)) };
      }),
  }),
  deleteSchedule: t.field({
    type: DeleteScheduleResult.type,
    description: 'Removes a schedule; its jobs stay. A second call is NotFound.',
    args: { name: t.arg.string({ required: true, description: 'Its name.' }) },
    resolve: (_, { name }, context) =>
      DeleteScheduleResult.run(async () => {
        freshLoaders(context);
        await context.schedules.remove(context.caller, name);
        return { name };
      }),
  }),
  runSchedule: t.field({
    type: SubmitJobResult.type,
    description:
      'Hands in a job of a schedule now, whatever its times, also while it is disabled or its last job is unfinished. Each call makes another job.',
    args: { name: t.arg.string({ required: true, description: 'Its name.' }) },
    resolve: (_, { name }, context) =>
      SubmitJobResult.run(() => {
        freshLoaders(context);
        return context.schedules.run(context.caller, name);
      }),
  }),
}));
