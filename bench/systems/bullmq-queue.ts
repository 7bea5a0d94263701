import type { Queue } from 'bullmq';
import { INPUT, type Submitter } from './system.ts';

/** What BullMQ's two back ends have in common. */
export const NOOP = 'noop';

/** Jobs at a time: the best of those tried for each purpose, on both back ends (README.md says which). */
export const CONCURRENCY = { throughput: 100, latency: 1 };

/** A done job is removed in the same step; to keep it would be slower. */
export const JOB_OPTIONS = { removeOnComplete: true };

export function submissions(queue: Pick<Queue, 'add' | 'addBulk'>): Pick<Submitter, 'submit' | 'submitMany'> {
  return {
    submit: () => queue.add(NOOP, INPUT),
    submitMany: (count) => queue.addBulk(Array.from({ length: count }, () => ({ name: NOOP, data: INPUT }))),
  };
}
