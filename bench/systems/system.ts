import type { BenchDatabase, Machine } from '../lib/services.ts';

/** One system under test, as the benchmarks use it. Every job has the same small input and the same empty handler. */
export interface System {
  /** For names of databases. */
  id: string;
  name: string;
  /** How it is set for what is measured, for the report. */
  settings: { submit: string; throughput: string; latency: string };
  /** Module of its worker process. */
  worker: URL;
  /** Brings the database up to date and opens the submitting side. */
  open(machine: Machine, database: BenchDatabase): Promise<Submitter>;
}

/** The submitting side of a system. Whatever resolves is durable. */
export interface Submitter {
  submit(): Promise<unknown>;
  /** All in one call. */
  submitMany(count: number): Promise<unknown>;
  /** Whether a job is left to be started or finished. */
  hasUnfinished(): Promise<boolean>;
  /** @throws unless the database says what it must after that many jobs were submitted and run */
  assertAllDone(jobs: number): Promise<void>;
  close(): Promise<unknown>;
}

/** The input of every job. */
export const INPUT = { user: 'user-17', order: 4711, express: true };
