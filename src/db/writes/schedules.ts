import type { ScheduleRow } from '../../core/schedule.ts';
import { type DueSchedule, SCHEDULE_COLUMNS } from '../reads/schedules.ts';
import type { Executor, Tx } from '../types.ts';

/** A schedule to be saved; JSON columns are texts. */
export interface ScheduleInput {
  id: string;
  tenant: string;
  name: string;
  task: string;
  input: string | null;
  cron: string;
  timezone: string;
  overlap: string;
  enabled: boolean;
  options: string;
  nextRunAt: string | null;
}

// A schedule that keeps its times keeps the next one too, also when it is due already: saving it again, as programs do
// at each start, must not swallow a run.
const SAVE = `
with t as (select clock_timestamp() as now)
insert into waymark.schedules as s (id, tenant, name, task, input, cron, timezone, overlap, enabled, options,
                                    next_run_at, created_at, changed_at)
select $1::uuid, $2::text, $3::text, $4::text, $5::text::json, $6::text, $7::text, $8::text, $9::boolean,
       $10::text::json, $11::timestamptz, t.now, t.now
from t
on conflict (tenant, name) do update
set task = excluded.task, input = excluded.input, cron = excluded.cron, timezone = excluded.timezone,
    overlap = excluded.overlap, enabled = excluded.enabled, options = excluded.options,
    changed_at = excluded.changed_at,
    next_run_at = case when excluded.enabled and s.next_run_at is not null
                            and s.cron = excluded.cron and s.timezone = excluded.timezone
                       then s.next_run_at else excluded.next_run_at end
returning ${SCHEDULE_COLUMNS}`;

/** Saves a schedule in the place of the one of its name, which keeps its id, its last run, and its next one if it can. */
export async function saveSchedule(db: Executor, s: ScheduleInput): Promise<ScheduleRow> {
  const { id, tenant, name, task, input, cron, timezone, overlap, enabled, options, nextRunAt } = s;
  const [row] = await db.query<ScheduleRow>(SAVE, [
    id,
    tenant,
    name,
    task,
    input,
    cron,
    timezone,
    overlap,
    enabled,
    options,
    nextRunAt,
  ]);
  return row as ScheduleRow;
}

/** Removes a schedule; its jobs stay. False: there was none. */
export async function deleteSchedule(db: Executor, tenant: string, name: string): Promise<boolean> {
  const rows = await db.query(`delete from waymark.schedules where tenant = $1 and name = $2 returning id`, [
    tenant,
    name,
  ]);
  return rows.length > 0;
}

/** Locks a schedule, so that nobody else fires it meanwhile. */
export async function lockSchedule(tx: Tx, tenant: string, name: string): Promise<ScheduleRow | null> {
  const [row] = await tx.query<ScheduleRow>(
    `select ${SCHEDULE_COLUMNS} from waymark.schedules s where s.tenant = $1 and s.name = $2 for no key update`,
    [tenant, name],
  );
  return row ?? null;
}

// SKIP LOCKED: whoever is firing it now will have done so. `changed_at` stands for everything else that was read of it.
const ADVANCE = `
with l as materialized (
  select s.id from waymark.schedules s
  where s.id = $1::uuid and s.enabled and s.next_run_at = $2::timestamptz and s.changed_at = $3::timestamptz
  for no key update skip locked
)
update waymark.schedules s set next_run_at = $4::timestamptz from l where s.id = l.id
returning s.overlap = 'SKIP' and exists (
  select 1 from waymark.job_states j where j.id = s.last_job_id and j.finished_at is null) as busy`;

/**
 * Sets the next time of a schedule that is as it was read; the time that was read is then this transaction's to carry out.
 * Null: somebody else has it, or changed it. `busy`: its last job is unfinished, and it does not want two at once.
 */
export async function advanceSchedule(
  tx: Executor,
  due: Pick<DueSchedule, 'id' | 'nextRunAt' | 'changedAt'>,
  nextRunAt: string | null,
): Promise<{ busy: boolean } | null> {
  const [row] = await tx.query<{ busy: boolean }>(ADVANCE, [due.id, due.nextRunAt, due.changedAt, nextRunAt]);
  return row ?? null;
}

/** Notes the job that a schedule has just submitted. */
export async function noteRun(tx: Executor, id: string, jobId: string): Promise<void> {
  await tx.query(
    `update waymark.schedules set last_run_at = clock_timestamp(), last_job_id = $2::uuid where id = $1::uuid`,
    [id, jobId],
  );
}
