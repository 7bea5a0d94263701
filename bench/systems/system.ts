import type { BenchDatabase } from '../lib/services.ts';

/** What Waymark can be compared with, as `--peers` names it. */
export const PEERS = ['graphile-worker', 'bullmq', 'bullmq-postgres', 'pg-boss', 'dbos'] as const;
export type PeerId = (typeof PEERS)[number];

/** What a system is opened for. */
export type Purpose = 'submit' | 'throughput' | 'latency' | 'steps';

/** One system under test, as the benchmarks use it. Every job has the same small input and the same empty handler. */
export interface System<S extends Submitter = Submitter> {
  /** Also for names of databases and keys. */
  id: 'waymark' | PeerId;
  name: string;
  /** How it is set for what is measured, for the report. It takes part in nothing else. */
  settings: Partial<Record<Purpose, string>>;
  /** Module of its worker process. */
  worker: URL;
  /** Brings its part of the stores up to date and opens the submitting side. */
  open(place: Place, purpose: Purpose): Promise<S>;
}

/** Where a system keeps its data: fresh, its own, and removed at the end of the run. It uses what it needs of it. */
export interface Place {
  database: BenchDatabase;
  redisUrl: string;
  redisPrefix: string;
}

/** The submitting side of a system. Whatever resolves is as durable as its store can make it. */
export interface Submitter {
  submit(): Promise<unknown>;
  /** All in one call, where the system has one. */
  submitMany(count: number): Promise<unknown>;
  /** Whether a job is left to be started or finished. */
  hasUnfinished(): Promise<boolean>;
  /** @throws unless the store says what it must after that many jobs were submitted and run, with `steps` in all */
  assertAllDone(jobs: number, steps?: number): Promise<void>;
  close(): Promise<unknown>;
}

/** Of a system whose jobs can be made of durable steps. */
export interface StepSubmitter extends Submitter {
  /** Jobs of `steps` steps each, which do nothing but give a number. */
  submitStepped(count: number, steps: number): Promise<unknown>;
}

/** The input of every job. */
export const INPUT = { user: 'user-17', order: 4711, express: true };

/** The input of a job that is made of steps. */
export type SteppedInput = typeof INPUT & { steps: number };
