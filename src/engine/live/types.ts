import type { ApprovalRow } from '../../core/approval.ts';
import type { JobChange } from '../../core/change.ts';
import type { JobEvent } from '../../core/event.ts';
import type { GraphRow, GraphSummary } from '../../core/graph.ts';
import type { JobRow, QueueRow } from '../../core/job.ts';
import type { Logger } from '../../core/log.ts';
import type { JobState } from '../../core/state.ts';
import type { ApprovalFilter } from '../../db/reads/approval-list.ts';
import type { Executor } from '../../db/types.ts';
import type { LiveChannel } from '../../events/channel.ts';
import type { Caller } from '../types.ts';

/**
 * What a list shows. Each part may be left out: then it lets everything through. A part that throws ends the stream
 * with its error.
 */
export interface ChangeFilter {
  /** Judged without a read, on what a change carries and a job never changes (id, task, queue). */
  change?(change: JobChange): boolean;
  /** Judged on the state before and on the state after; either is enough. */
  state?(state: JobState): boolean;
  /** Everything else, on the job as it is now. Not its state: a job that left a state must be delivered too. */
  row?(row: JobRow): boolean;
}

export interface JobsChanged {
  /** Jobs that changed since the last message, once each, as they are now. */
  jobs: JobRow[];
  /** Changes may have been missed (always so in the first message): read the list again. `jobs` is empty then. */
  reset: boolean;
}

/** A node of a graph with its job as it is. */
export interface GraphNodeView {
  name: string;
  job: JobRow;
  deduplicated: boolean;
}

/** A graph with all its nodes as of one moment. It does not change; streams that send the same moment share it. */
export interface GraphView extends GraphRow {
  summary: GraphSummary;
  /** In the order in which they were given, without those whose job is past its retention. */
  nodes: readonly GraphNodeView[];
}

export interface GraphChanged {
  graph: GraphView;
  /** All of them with `reset`, else those that changed since the last message. */
  nodes: readonly GraphNodeView[];
  /** True in the first message, and again when changes may have been missed. */
  reset: boolean;
}

export interface ApprovalsChanged {
  /** Approvals that may have changed since the last message, as they are now. */
  approvals: ApprovalRow[];
  /** Changes may have been missed (always so in the first message): read the list again. `approvals` is empty then. */
  reset: boolean;
  /** Open ones that match the filter. */
  openCount: number;
}

/**
 * Live streams of this process. They share one channel subscription and one read per job, whatever the number of
 * streams. Nothing is registered before the first `next()`; `return()` frees everything at once, also while a `next()`
 * waits, and may be called twice. `jobId` is the stored form.
 */
export interface LiveHub {
  /**
   * Facts behind `after` (default 0), in order, each once. With `untilTerminal` (default true) it ends after the
   * terminal event of the current run.
   * @throws NotFound (unknown, another tenant's or removed, also in mid-stream), CursorInvalid, LimitExceeded,
   *   Unavailable (only before the first value; later the stream waits for the store). All from `next()`.
   */
  jobEvents(
    caller: Caller,
    jobId: string,
    options?: { after?: number; untilTerminal?: boolean; signal?: AbortSignal },
  ): AsyncIterableIterator<JobEvent>;
  /**
   * The job as it is, then the newest each time its version grew: may skip, never goes back. With `untilTerminal`
   * (default true) it ends after a terminal one. @throws as `jobEvents`, but CursorInvalid.
   */
  jobProgress(
    caller: Caller,
    jobId: string,
    options?: { untilTerminal?: boolean; signal?: AbortSignal },
  ): AsyncIterableIterator<JobRow>;
  /**
   * Changes of the tenant's jobs, at most one message per `minIntervalMs` (default 250). Never ends by itself. Streams
   * with the same `filterKey` have the same filter; they share all work, and are given the same messages (do not change
   * them). @throws LimitExceeded, Unavailable as above
   */
  jobsChanged(
    caller: Caller,
    options?: { filter?: ChangeFilter; filterKey?: string; minIntervalMs?: number; signal?: AbortSignal },
  ): AsyncIterableIterator<JobsChanged>;
  /**
   * A graph with all its nodes, then what changed, at most one message per `minIntervalMs` (default 250). With
   * `untilTerminal` (default true) it ends after the message in which every node is terminal.
   * @throws NotFound (unknown, another tenant's or removed, also in mid-stream), LimitExceeded, Unavailable as above
   */
  graphProgress(
    caller: Caller,
    graphId: string,
    options?: { minIntervalMs?: number; untilTerminal?: boolean; signal?: AbortSignal },
  ): AsyncIterableIterator<GraphChanged>;
  /**
   * Approvals of the tenant as they open, are voted on and close. Never ends by itself.
   * @throws LimitExceeded, Unavailable as above
   */
  approvalsChanged(
    caller: Caller,
    options?: { filter?: ApprovalFilter; signal?: AbortSignal },
  ): AsyncIterableIterator<ApprovalsChanged>;
  /**
   * All queues, with the tenant's counts behind them: at once, then whenever they differ, at most one message per
   * `minIntervalMs` (default 1000). Never ends by itself. @throws LimitExceeded, Unavailable as above
   */
  queuesChanged(
    caller: Caller,
    options?: { minIntervalMs?: number; signal?: AbortSignal },
  ): AsyncIterableIterator<QueueRow[]>;
  stats(): LiveStats;
  /** Ends all streams; later ones end at once. A second call does nothing. */
  close(): Promise<void>;
}

/** Gauges, and under `reads` the statements sent since the start. */
export interface LiveStats {
  streams: number;
  /** Jobs that are followed. */
  topics: number;
  /** Tenants whose changes are followed. */
  tenants: number;
  /** Subscriptions of the channel. */
  subscriptions: number;
  reads: { rows: number; events: number; heads: number; pulses: number };
}

export interface LiveHubOptions {
  /** Only read from. */
  db: Executor;
  channel: LiveChannel;
  log: Logger;
  /** How often is read while the channel is down. Default 1000. */
  pollMs?: number;
  /** The same while it is live, against lost messages. Default 5000. */
  safetyMs?: number;
  /** Streams at most. Default 20,000. */
  maxStreams?: number;
  /** The same of one tenant, so that one cannot take all. Default 10,000. */
  maxTenantStreams?: number;
  /** Facts kept per job in memory. Default 256. */
  ringSize?: number;
  /** Facts in one read. Default 200. */
  pageSize?: number;
  /** Changed jobs kept for a list between two messages; more become a reset. Default 500. */
  maxChanged?: number;
}
