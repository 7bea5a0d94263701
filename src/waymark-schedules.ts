import { durationMs } from './core/duration.ts';
import type { OverlapPolicy } from './core/schedule.ts';
import type { AnyTask, InputOf, SubmitArgs } from './core/task.ts';
import type { SchedulesEngine } from './engine/schedule-types.ts';
import type { Caller, Submitted } from './engine/types.ts';
import { type ScheduleSnapshot, scheduleSnapshotOf } from './schedule-snapshot.ts';

/** What a back end may say about a schedule. What is left out comes from the task, at each run. */
export interface ScheduleOptions {
  /** Minute, hour, day of month, month, day of week: `"30 2 * * MON-FRI"`; or `"@daily"` and its like. */
  cron: string;
  /** Where its hours are read: `"Europe/Berlin"`. Default `UTC`. */
  timezone?: string;
  /** Default true. */
  enabled?: boolean;
  /** When its last job is unfinished: no job for this time (`SKIP`, the default), or another (`ALLOW`). */
  overlap?: OverlapPolicy;
  title?: string;
  queue?: string;
  /** −100…100. */
  priority?: number;
  tags?: readonly string[];
  maxAttempts?: number;
  /** Longest duration of one attempt: `"10m"`, or milliseconds. */
  timeout?: string | number;
  /** Jobs of one key run one after the other. */
  concurrencyKey?: string;
}

/** The input of its jobs: by the task, where that is given as an object. */
export type ScheduledInput<T> = T extends AnyTask
  ? [] extends SubmitArgs<InputOf<T>, never>
    ? { input?: InputOf<T> }
    : { input: InputOf<T> }
  : { input?: unknown };

/** The part of a back end about schedules. `R`: what it gives for a submitted job. */
export interface WaymarkSchedules<R> {
  /**
   * Makes a schedule, or replaces the one of its name, which keeps its id; its next time stays unless cron or time zone
   * change, so a program may save its schedules at each start.
   * @throws InvalidInput, UnknownTask, TypeError when `timeout` is no duration
   */
  saveSchedule<T extends AnyTask | string>(
    schedule: ScheduleOptions & { name: string; task: T } & ScheduledInput<T>,
  ): Promise<ScheduleSnapshot>;
  /** Removes a schedule; its jobs stay. @throws NotFound */
  deleteSchedule(name: string): Promise<void>;
  /** Submits a job of a schedule now; each call another. @throws NotFound, and as `submit` */
  runSchedule(name: string): Promise<R>;
}

/** @param register makes a task known @param resultOf what is given for a job that was submitted */
export function createWaymarkSchedules<R>(
  schedules: SchedulesEngine,
  caller: Caller,
  { register, resultOf }: { register(task: AnyTask): Promise<void>; resultOf(submitted: Submitted): Promise<R> },
): WaymarkSchedules<R> {
  return {
    async saveSchedule({ task, timeout, tags, ...rest }) {
      const known = typeof task === 'string' ? {} : { definition: task.definition, inputSchema: task.inputSchema };
      if (typeof task !== 'string') await register(task);
      const request = {
        ...rest,
        task: typeof task === 'string' ? task : task.name,
        tags: tags ?? null,
        timeoutMs: timeout === undefined ? null : durationMs(timeout, 'timeout'),
      };
      return scheduleSnapshotOf(await schedules.save(caller, request, known));
    },
    deleteSchedule: (name) => schedules.remove(caller, name),
    runSchedule: async (name) => resultOf(await schedules.run(caller, name)),
  };
}
