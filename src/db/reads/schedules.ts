import type { ScheduleRow } from '../../core/schedule.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

export const SCHEDULE_COLUMNS = `
  s.id, s.tenant, s.name, s.task, s.input, s.cron, s.timezone, s.overlap, s.enabled, s.options,
  s.next_run_at as "nextRunAt", s.last_run_at as "lastRunAt", s.last_job_id as "lastJobId",
  s.created_at as "createdAt", s.changed_at as "changedAt"`;

/** Schedules by id; those that are gone, or another tenant's, are left out. */
export function schedulesByIds(db: Executor, tenant: string, ids: readonly string[]): Promise<ScheduleRow[]> {
  return db.query<ScheduleRow>(
    `select ${SCHEDULE_COLUMNS} from waymark.schedules s where s.tenant = $1 and s.id = any($2::text::uuid[])`,
    [tenant, pgArray(ids)],
  );
}

export async function scheduleByName(db: Executor, tenant: string, name: string): Promise<ScheduleRow | null> {
  const [row] = await db.query<ScheduleRow>(
    `select ${SCHEDULE_COLUMNS} from waymark.schedules s where s.tenant = $1 and s.name = $2`,
    [tenant, name],
  );
  return row ?? null;
}

/** All schedules of a tenant by name. */
export function allSchedules(db: Executor, tenant: string): Promise<ScheduleRow[]> {
  return db.query<ScheduleRow>(
    `select ${SCHEDULE_COLUMNS} from waymark.schedules s where s.tenant = $1 order by s.name`,
    [tenant],
  );
}

/** A schedule whose time has come, with the moment at which it was seen. */
export type DueSchedule = ScheduleRow & { nextRunAt: string; now: string };

// As in staging: the moment is a scalar subquery, so that it bounds the index scan.
const DUE = `
with t as materialized (select clock_timestamp() as now)
select ${SCHEDULE_COLUMNS}, t.now
from waymark.schedules s, t
where s.enabled and s.next_run_at <= (select now from t)
order by s.next_run_at
limit $1::int`;

/** Up to `limit` schedules whose time has come, the longest due first. Locks nothing. */
export function dueSchedules(db: Executor, limit: number): Promise<DueSchedule[]> {
  return db.query<DueSchedule>(DUE, [limit]);
}

const NEXT_FIRING = `
select (extract(epoch from min(s.next_run_at) - clock_timestamp()) * 1000)::float8 as ms
from waymark.schedules s where s.enabled and s.next_run_at is not null`;

/** Milliseconds until the next schedule is due (negative: it is already), or null when none will be. */
export async function nextFiring(db: Executor): Promise<number | null> {
  const [row] = await db.query<{ ms: number | null }>(NEXT_FIRING);
  return row?.ms ?? null;
}

/** The moment, by the database's clock. */
export async function databaseTime(db: Executor): Promise<string> {
  const [row] = await db.query<{ now: string }>(`select clock_timestamp() as now`);
  return row?.now ?? '';
}
