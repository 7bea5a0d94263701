import type { JobFilter } from '../db/reads/job-filter.ts';
import type { Caller } from './types.ts';

/** What came of a bulk call. */
export interface BulkOutcome {
  /** Jobs that the filter and the verb's states match, as it began; counted to 1,000,000. */
  matched: number;
  /** Jobs that were changed by it. */
  changed: number;
  /** How many are left for the next call. */
  remaining: number;
}

export interface BulkOptions {
  reason?: string | null;
  /** Nothing is done unless as many match. */
  expectedCount?: number | null;
  /** Only counts. */
  dryRun?: boolean | null;
}

/**
 * Verbs on all jobs of a filter, at most `MAX_BULK_JOBS` a call, in transactions of a bounded size: repeat until nothing
 * remains. What changes at this moment is judged again under its lock, and left alone where it does not match any more.
 * A job on which the verb fails does not stop the others.
 */
export interface BulkEngine {
  /**
   * Cancels unfinished jobs as `JobsEngine.cancel` does, with their children. Those that were asked to stop before match,
   * but nothing is left to be done with them.
   * @throws InvalidInput (no field of the filter is given; the reason), CountChanged, Unavailable (what was done stays)
   */
  cancelJobs(caller: Caller, filter: JobFilter, options?: BulkOptions): Promise<BulkOutcome>;
  /**
   * Retries FAILED and CANCELED jobs as `JobsEngine.retry` does; COMPLETED, SCHEDULED and RETRYING ones where
   * `filter.states` names these. @throws as `cancelJobs`
   */
  retryJobs(
    caller: Caller,
    filter: JobFilter,
    options?: BulkOptions & { fromStart?: boolean | null },
  ): Promise<BulkOutcome>;
}
