import { nextRun } from '../core/cron.ts';
import { Unavailable, WaymarkError } from '../core/errors.ts';
import { toIso } from '../core/job.ts';
import type { Logger } from '../core/log.ts';
import { type ScheduleRow, scheduleActor } from '../core/schedule.ts';
import { type DueSchedule, dueSchedules, nextFiring } from '../db/reads/schedules.ts';
import type { Database, Tx } from '../db/types.ts';
import { advanceSchedule, noteRun } from '../db/writes/schedules.ts';
import type { Caller, JobsEngine, MaintenanceEngine, SubmitRequest, Submitted } from './types.ts';

const FIRE_BATCH = 100;
/** Rounds of one pass: what is left waits for the next. */
const MAX_ROUNDS = 10;
/** A schedule whose times this process cannot find (its zone may be known to others) is looked at again after this. */
const PUT_OFF_MS = 3_600_000;
/** One that could not be fired for some other reason, after this. */
const RETRY_MS = 60_000;

/**
 * Fires schedules that are due: the next time is set by compare-and-set in the transaction that submits, so each time
 * gives one job however many processes look. Times that were missed while nobody looked are one. What is refused for one
 * schedule is logged and does not keep the others.
 */
export function createFiring(
  database: Database,
  submit: JobsEngine['submit'],
  log: Logger,
): Pick<MaintenanceEngine, 'fire'> {
  const db = database.maintenance;

  async function fireDue(due: DueSchedule): Promise<boolean> {
    const names = { schedule: due.name, task: due.task };
    const next = nextOf(due, names);
    try {
      return await fireAt(due, next);
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      // A refusal would be the same again; whatever else it is may be better in a while, and its run is still due then.
      if (error instanceof WaymarkError) {
        log.error(
          { err: error, ...names },
          'a schedule was due, but its job was refused; it goes on with its next time',
        );
        await advanceSchedule(db, due, next);
      } else {
        log.error({ err: error, ...names }, 'a schedule was due, but could not be fired; it is tried again later');
        await advanceSchedule(db, due, later(due, RETRY_MS));
      }
      return false;
    }
  }

  async function fireAt(due: DueSchedule, next: string | null): Promise<boolean> {
    const submitted = await db.transaction(async (tx) => {
      const advanced = await advanceSchedule(tx, due, next);
      if (advanced === null || advanced.busy) return null;
      return submitScheduled(tx, submit, { tenant: due.tenant, actor: scheduleActor(due.name) }, due);
    });
    submitted?.wake();
    return submitted !== null;
  }

  function nextOf(due: DueSchedule, names: object): string | null {
    try {
      return nextRun(due.cron, due.timezone, new Date(toIso(due.now)))?.toISOString() ?? null;
    } catch (error) {
      log.error({ err: error, ...names }, 'the next time of a schedule cannot be found; it is looked at again later');
      return later(due, PUT_OFF_MS);
    }
  }

  return {
    async fire() {
      // A look is cheaper than a pass that finds nothing, which is what most are.
      const dueMs = await nextFiring(db);
      if (dueMs === null || dueMs > 0) return { fired: 0, nextDueMs: dueMs };
      let fired = 0;
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const due = await dueSchedules(db, FIRE_BATCH);
        for (const schedule of due) if (await fireDue(schedule)) fired++;
        if (due.length < FIRE_BATCH) break;
      }
      return { fired, nextDueMs: await nextFiring(db) };
    },
  };
}

/** Submits a job of a schedule in the transaction that holds its row. */
export async function submitScheduled(
  tx: Tx,
  submit: JobsEngine['submit'],
  caller: Caller,
  schedule: ScheduleRow,
): Promise<Submitted> {
  const submitted = await submit(caller, requestOf(schedule), { tx, links: { scheduleId: schedule.id } });
  await noteRun(tx, schedule.id, submitted.jobId);
  return submitted;
}

function later({ now }: DueSchedule, ms: number): string {
  return new Date(Date.parse(toIso(now)) + ms).toISOString();
}

function requestOf({ task, input, options }: ScheduleRow): SubmitRequest {
  const { hasInput, ...rest } = options;
  return { task, ...(hasInput ? { input } : {}), ...rest };
}
