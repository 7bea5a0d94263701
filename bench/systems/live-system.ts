import type { ServerProcess } from '../lib/server-process.ts';

/** A system that can be followed live. */
export interface LiveSystem {
  name: string;
  /** How it is set, for the report. */
  setting: string;
  /** Starts a fresh server; the caller closes it. */
  start(): Promise<LiveServer>;
}

/** A job that subscribers follow, and the `seq` of its newest fact. */
export interface LiveJob {
  readonly id: string;
  lastSeq: number;
}

export interface LiveServer {
  server: Pick<ServerProcess, 'url' | 'pid' | 'held' | 'close'>;
  jobs: readonly LiveJob[];
  /** Makes so many facts of each of these jobs: one after the other of one job, at the same time of several. */
  publishEvents(jobs: readonly LiveJob[], each: number): Promise<unknown>;
  /** Makes so many new jobs at once, for lists. */
  publishJobs(count: number): Promise<unknown>;
}
