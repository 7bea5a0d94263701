import { cronProblem, nextRun, zoneProblem } from '../core/cron.ts';
import { type InputIssue, InvalidInput, NotFound, PayloadTooLarge } from '../core/errors.ts';
import { newUuid } from '../core/ids.ts';
import { toIso } from '../core/job.ts';
import { textProblem } from '../core/json.ts';
import { MAX_SCHEDULE_NAME, type ScheduledJobOptions } from '../core/schedule.ts';
import { databaseTime } from '../db/reads/schedules.ts';
import type { Database } from '../db/types.ts';
import { deleteSchedule, lockSchedule, saveSchedule } from '../db/writes/schedules.ts';
import type { Prepare } from './prepare.ts';
import type { ScheduleRequest, SchedulesEngine } from './schedule-types.ts';
import { submitScheduled } from './schedules.ts';
import type { JobsEngine } from './types.ts';

/** Saving, removing and running schedules. Who carries them out is `schedules.ts`. */
export function createScheduleVerbs(
  database: Database,
  { prepare, submit }: { prepare: Prepare; submit: JobsEngine['submit'] },
): SchedulesEngine {
  const db = database.submit;

  return {
    async save(caller, request, more = {}) {
      const { cron, overlap, enabled, timezone: zone } = request;
      const timezone = zone ?? 'UTC';
      checkTimes({ ...request, timezone });
      // Everything that a submit would refuse is refused now, when somebody is there to be told.
      const { task, input, title, queue, priority, tags, maxAttempts, timeoutMs, concurrencyKey } = request;
      const given = input === undefined ? {} : { input };
      const asked = { task, ...given, title, queue, priority, tags, maxAttempts, timeoutMs, concurrencyKey };
      const job = await prepare(caller, asked, more).catch((error) => {
        throw error instanceof PayloadTooLarge
          ? new InvalidInput([{ path: error.path ?? 'input', message: error.message }], { cause: error })
          : error;
      });
      const on = enabled ?? true;
      const now = new Date(toIso(await databaseTime(db)));
      return saveSchedule(db, {
        id: newUuid(),
        tenant: caller.tenant,
        name: request.name,
        task: request.task,
        input: job.input,
        cron,
        timezone,
        overlap: overlap ?? 'SKIP',
        enabled: on,
        options: JSON.stringify(optionsOf(request, job.input !== null)),
        nextRunAt: on ? (nextRun(cron, timezone, now)?.toISOString() ?? null) : null,
      });
    },

    async remove(caller, name) {
      if (textProblem(name) || !(await deleteSchedule(db, caller.tenant, name))) throw new NotFound('schedule', name);
    },

    async run(caller, name) {
      if (textProblem(name)) throw new NotFound('schedule', name);
      const submitted = await db.transaction(async (tx) => {
        const schedule = await lockSchedule(tx, caller.tenant, name);
        if (!schedule) throw new NotFound('schedule', name);
        return submitScheduled(tx, submit, caller, schedule);
      });
      submitted.wake();
      return submitted;
    },
  };
}

function optionsOf(request: ScheduleRequest, hasInput: boolean): ScheduledJobOptions {
  const { title, queue, priority, tags, maxAttempts, timeoutMs, concurrencyKey } = request;
  return {
    hasInput,
    title: title ?? null,
    queue: queue ?? null,
    priority: priority ?? null,
    tags: [...new Set(tags ?? [])],
    maxAttempts: maxAttempts ?? null,
    timeoutMs: timeoutMs ?? null,
    concurrencyKey: concurrencyKey ?? null,
  };
}

/** @throws InvalidInput that names each field and its rule */
function checkTimes({ name, cron, timezone }: { name: string; cron: string; timezone: string }): void {
  const issues: InputIssue[] = [];
  for (const [path, message] of [
    ['name', nameProblem(name)],
    ['cron', cronProblem(cron)],
    ['timezone', zoneProblem(timezone)],
  ] as const) {
    if (message !== null) issues.push({ path, message });
  }
  if (issues.length > 0) throw new InvalidInput(issues);
}

function nameProblem(name: string): string | null {
  if (name.length === 0) return 'must not be empty';
  if (name.length > MAX_SCHEDULE_NAME) return `must not be longer than ${MAX_SCHEDULE_NAME} characters`;
  return textProblem(name);
}
