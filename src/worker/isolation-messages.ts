import type { GatherOptions } from '../artifacts/gather.ts';
import type { ProgressState } from '../core/progress.ts';
import type { AttemptEnd, ClaimedJob, ExecutionEngine } from '../engine/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import type { AbortMessage } from './attempt.ts';

/** What a handler's thread is started with. */
export interface IsolatedStart {
  /** Path of the module that exports the task. */
  module: string;
  /** Null: there is no other connection to be had, and so no transaction in the thread. */
  databaseUrl: string | null;
  maxBytes: { result: number; checkpoint: number };
  leaseMs: number;
  publicUrl: string;
  /** The thread gathers the contents of artifacts, and the worker stores them. */
  gathering: GatherOptions;
}

export interface IsolatedRun {
  job: ClaimedJob;
  workerId: string;
}

/** How the attempt is to be recorded; null: it lost its job. */
export interface IsolatedEnd {
  end: AttemptEnd | null;
  progress: ProgressState | null;
}

/** What the worker says to the thread. */
export interface IsolatedCalls {
  /** Runs one attempt to its end. One at a time. */
  run(run: IsolatedRun): Promise<IsolatedEnd>;
  abort(message: AbortMessage): void;
}

/** The verbs of the engine that need no connection of the thread's own: the worker does them, together with others'. */
export const RELAYED = [
  'checkpoints',
  'saveCheckpoint',
  'storeArtifact',
  'openApproval',
  'submitFromHandler',
  'childOutcomes',
  'dependencies',
  'flushProgress',
  'appendLogs',
] as const;
export type RelayedVerbs = Pick<ExecutionEngine, (typeof RELAYED)[number]>;

/** What the thread says to the worker. */
export interface IsolatedNews extends RelayedVerbs, Pick<LiveChannel, 'publishChanges' | 'publishReady'> {
  /** Answered when it is known that the lease lasts, behind whatever else there is to be told. */
  sure(): Promise<void>;
  log(level: 'debug' | 'info' | 'warn' | 'error', data: object, message: string): void;
}

/** Messages that are not answered. */
export const NEWS_EVENTS = ['publishChanges', 'publishReady', 'log'] as const;
export const CALL_EVENTS = ['abort'] as const;
