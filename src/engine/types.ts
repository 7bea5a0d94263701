import type { JobRow } from '../core/job.ts';
import type { Caller, SubmitOptions, SubmitRequest, Submitted } from './submit-types.ts';

/** What is said of and by workers. */
export type * from './execution-types.ts';

export type * from './submit-types.ts';

/** Verbs of clients. Each returns the job as it is after the commit. */
export interface JobsEngine {
  /** @throws InvalidInput, UnknownTask, IdempotencyConflict, PayloadTooLarge, NotFound (of `dependsOn`), Unavailable */
  submit(caller: Caller, request: SubmitRequest, options?: SubmitOptions): Promise<Submitted>;
  /** All or nothing, in order; at most 1000. Errors carry `path` `inputs[i]`. */
  submitMany(
    caller: Caller,
    requests: readonly SubmitRequest[],
    options?: Pick<SubmitOptions, 'tx'>,
  ): Promise<Submitted[]>;
  /**
   * Cancels a waiting job at once; of a running one it requests it. A second call on a canceled (or being canceled) job
   * answers alike. `cascade` (default true): its unfinished children are canceled with it. `id` is the stored form.
   * @throws NotFound, InvalidTransition
   */
  cancel(
    caller: Caller,
    id: string,
    options?: { reason?: string | null; expectedRun?: number | null; cascade?: boolean | null },
  ): Promise<JobRow>;
  /** A finished job opens its next run, a RETRYING or SCHEDULED one becomes due now. @throws NotFound, InvalidTransition, InvalidInput */
  retry(
    caller: Caller,
    id: string,
    options?: {
      expectedRun?: number | null;
      fromStart?: boolean | null;
      fromCheckpoint?: string | null;
      reason?: string | null;
    },
  ): Promise<JobRow>;
  /** A SCHEDULED or RETRYING job becomes due now. @throws NotFound, InvalidTransition */
  runNow(caller: Caller, id: string): Promise<JobRow>;
}

/** One bounded pass each; safe in any number of processes at once. They return how much they did. */
export interface MaintenanceEngine {
  /** Due SCHEDULED and RETRYING jobs become QUEUED. `nextDueMs`: until the next known due time, null when none. */
  stage(): Promise<{ staged: number; nextDueMs: number | null }>;
  /** Schedules that are due submit their jobs. `nextDueMs`: until the next one is due, null when none will be. */
  fire(): Promise<{ fired: number; nextDueMs: number | null }>;
  /** Workers past their lease become LOST, their jobs go back; jobs that do not advance end their attempt. */
  rescue(): Promise<{ lostWorkers: number; rescued: number }>;
  /**
   * For the sole owner of an embedded database, before its own worker starts: whatever worker was there before is gone
   * for certain, so its jobs go back at once and not after a lease.
   */
  recover(): Promise<{ lostWorkers: number; rescued: number }>;
  /** Tells dependants, parents, children and keys what a process that died had left to be told. */
  followUp(): Promise<{ done: number }>;
  /** Ends approvals whose time is over. `nextDueMs`: until the next known one, null when none expires. */
  expire(): Promise<{ expired: number; nextDueMs: number | null }>;
  /** Removes what is past its retention. */
  prune(): Promise<{ pruned: number }>;
  /** Folds count deltas. */
  fold(): Promise<{ folded: number }>;
}

/** Settings of the engine, in milliseconds and bytes. */
export interface EngineOptions {
  leaseMs: number;
  sweepMs: number;
  priorityStepMs: number;
  retainMs: { completed: number; failed: number; canceled: number; keys: number };
  maxBytes: { input: number; result: number; checkpoint: number };
}
