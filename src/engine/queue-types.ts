import type { QueueRow } from '../core/job.ts';
import type { Caller } from './types.ts';

/** Limits of a queue, over all workers. What is left out stays as it is; null lifts a limit. */
export interface QueueLimits {
  /** Jobs that run at once, 1…100,000. */
  maxRunning?: number | null | undefined;
  /** Starts in any `perMs` milliseconds: `max` from 1 to 1,000,000, `perMs` from 1 to 100 years. */
  rateLimit?: { max: number; perMs: number } | null | undefined;
}

/** Verbs on queues, which belong to the deployment and not to a tenant. Each returns the queue as it is after the commit. */
export interface QueuesEngine {
  /**
   * Its jobs stay in line; what runs goes on. A claim that is under way may still take some. Of a queue that is paused
   * already nothing changes, unless another reason is given: then this reason and this caller stand in place of the
   * first ones, and `pausedAt` stays.
   * @throws NotFound when nothing has named the queue, InvalidInput
   */
  pause(caller: Caller, name: string, options?: { reason?: string | null }): Promise<QueueRow>;
  /** Workers take its jobs again, at once. A second call answers alike. @throws NotFound */
  resume(caller: Caller, name: string): Promise<QueueRow>;
  /**
   * Sets or lifts limits; where one leaves more than before, workers look at once. A limit counts what it finds RUNNING,
   * but not the starts before there was a rate limit, and a claim under way at this moment is not held to it. A second
   * call changes nothing.
   * @throws NotFound, InvalidInput
   */
  update(caller: Caller, name: string, limits: QueueLimits): Promise<QueueRow>;
}
