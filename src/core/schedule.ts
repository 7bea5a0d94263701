import type { Timestamp } from './job.ts';

export const OVERLAP_POLICIES = ['SKIP', 'ALLOW'] as const;
/** What happens when a schedule is due while its last job is not finished: nothing, or another job. */
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

export const MAX_SCHEDULE_NAME = 100;

/** What a schedule says about its jobs, as it was given; null: as their task says. */
export interface ScheduledJobOptions {
  /** JSON null is an input, too. */
  hasInput: boolean;
  title: string | null;
  queue: string | null;
  priority: number | null;
  tags: string[];
  maxAttempts: number | null;
  timeoutMs: number | null;
  concurrencyKey: string | null;
}

export interface ScheduleRow {
  id: string;
  tenant: string;
  name: string;
  task: string;
  input: unknown;
  cron: string;
  timezone: string;
  overlap: OverlapPolicy;
  enabled: boolean;
  options: ScheduledJobOptions;
  /** Null while it is disabled. */
  nextRunAt: Timestamp | null;
  lastRunAt: Timestamp | null;
  lastJobId: string | null;
  createdAt: Timestamp;
  changedAt: Timestamp;
}

/** Who submits the jobs of a schedule. */
export function scheduleActor(name: string): string {
  return `system:schedule/${name}`;
}
