import { publicId } from './core/ids.ts';
import { toIso } from './core/job.ts';
import type { OverlapPolicy, ScheduleRow } from './core/schedule.ts';

/** A schedule as it was at one moment, for back ends. A plain object that does not change. */
export interface ScheduleSnapshot {
  /** `sch_…` */
  id: string;
  name: string;
  task: string;
  cron: string;
  timezone: string;
  overlap: OverlapPolicy;
  enabled: boolean;
  /** RFC 3339; null while it is disabled. */
  nextRunAt: string | null;
  lastRunAt: string | null;
  /** `job_…`: the last one that it submitted. */
  lastJobId: string | null;
}

export function scheduleSnapshotOf(row: ScheduleRow): ScheduleSnapshot {
  const { id, name, task, cron, timezone, overlap, enabled, nextRunAt, lastRunAt, lastJobId } = row;
  return {
    id: publicId('Schedule', id),
    name,
    task,
    cron,
    timezone,
    overlap,
    enabled,
    nextRunAt: nextRunAt && toIso(nextRunAt),
    lastRunAt: lastRunAt && toIso(lastRunAt),
    lastJobId: lastJobId && publicId('Job', lastJobId),
  };
}
