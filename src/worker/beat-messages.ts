import type { BeatAnswer } from '../engine/types.ts';

/** What the thread of the beats is started with. */
export interface BeatThreadStart {
  databaseUrl: string;
  /** The longest time for the answer to one beat; then the next one goes over a new connection. */
  answerMs: number;
  /** The worker's event loop counts as blocked when it has been silent for longer. */
  blockedMs: number;
  /** And as hung, which ends its lease, after this. */
  maxBlockMs: number;
}

/** One boot of the worker. */
export interface BeatBoot {
  workerId: string;
  heartbeatMs: number;
  leaseMs: number;
}

/** A sign of life of the worker's event loop, with what the next beat says. */
export interface BeatPulse {
  busy: number;
  draining: boolean;
  /** The loop was blocked since the last pulse. */
  blocked: boolean;
}

/** What the worker says to the thread. */
export interface BeatCalls {
  /** Beats for this boot from now on, and for no other. */
  open(boot: BeatBoot): void;
  close(workerId: string): void;
  nudge(workerId: string): void;
  pulse(pulse: BeatPulse): void;
  /** Stops and gives the connection back. */
  end(): Promise<void>;
}

/** What the thread says to the worker. Times are of `monotonicMs`, which all threads of a process share. */
export interface BeatNews {
  ready(): void;
  answered(workerId: string, answer: BeatAnswer, sentAt: number): void;
  failed(workerId: string, error: unknown): void;
}
