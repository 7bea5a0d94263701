import type { JobEvent } from './event.ts';
import type { ProgressState } from './progress.ts';
import type { JobState } from './state.ts';

/**
 * What the live channel carries about one job after a commit: enough to tell whether somebody cares, and the facts
 * themselves where they are small. It is a hint. A reader that finds a gap reads Postgres; nothing lives only here.
 */
export interface JobChange {
  /** Stored (UUID) form. */
  jobId: string;
  tenant: string;
  task: string;
  queue: string;
  run: number;
  /** The state before, null for a new job: a list that showed the job learns that it left. */
  from: JobState | null;
  state: JobState;
  version: number;
  lastSeq: number;
  /** New facts, seq ascending; left out (undefined) where they are too large to be sent: read them from Postgres. */
  events?: JobEvent[];
  /** The gauge, when this change is a progress report. */
  progress?: ProgressState;
}

/** Tells workers where work became claimable. */
export interface ReadyHint {
  queue: string;
  task: string;
  /** It may stand in line before others that were claimed long ago: handed back, unblocked, of a queue that goes on. */
  ahead?: boolean;
}

/** Events whose JSON is larger than this are not sent over the channel but read from Postgres. */
export const MAX_EVENT_ON_CHANNEL = 8 * 1024;

/** A busy tenant's changes are spread over this many channels, so that a reader of one job parses a fraction of them. */
export const CHANNEL_SHARDS = 16;

/** The shard of a job: the last hex digit of its id. */
export function shardOf(jobId: string): number {
  return Number.parseInt(jobId.at(-1) ?? '0', 16) % CHANNEL_SHARDS;
}
