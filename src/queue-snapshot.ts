import { formatDuration } from './core/duration.ts';
import { type QueueRow, toIso } from './core/job.ts';

/** A queue as it was at one moment, for back ends. A plain object that does not change. */
export interface QueueSnapshot {
  name: string;
  paused: boolean;
  /** RFC 3339; null while it is not paused. */
  pausedAt: string | null;
  pausedBy: string | null;
  pauseReason: string | null;
  /** How many of its jobs may run at once, over all workers; null: no limit. */
  maxRunning: number | null;
  /** How many may start in a time (`"1m"`), over all workers; null: no limit. */
  rateLimit: { max: number; per: string } | null;
}

export function queueSnapshotOf(row: QueueRow): QueueSnapshot {
  const { name, paused, pausedAt, pausedBy, pauseReason, maxRunning, rateLimitMax: max, rateLimitPerMs: perMs } = row;
  return {
    name,
    paused,
    pausedAt: pausedAt && toIso(pausedAt),
    pausedBy,
    pauseReason,
    maxRunning,
    rateLimit: max === null || perMs === null ? null : { max, per: formatDuration(perMs) },
  };
}
