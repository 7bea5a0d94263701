import type { AttemptOutcome } from '../../src/core/state.ts';
import type { Submission } from './model-clients.ts';

/**
 * Which attempt a worker speaks about: the newest one of a running job, or (`late`) any number of any job, such as one
 * that ended long ago or was never made. Both are counted round what there is, so that every list of commands makes
 * sense, also the shorter ones that are tried to find the smallest counterexample.
 */
export interface Target {
  job: number;
  late: boolean;
  attempt: number;
}

/** What a simulation does, as data: it is printed as it is when the simulation fails. */
export type Action =
  | { do: 'submit'; jobs: Submission[] }
  | { do: 'claim'; worker: number; tasks: string[]; limit: number }
  | { do: 'end'; at: Target; outcome: Said; n: number; retryable: boolean; delayHours: number; progress: boolean }
  | { do: 'save'; at: Target; key: string; kind: SavedKind; n: number; rows: boolean; progress: boolean }
  | { do: 'progress'; at: Target; n: number }
  | { do: 'delivered'; at: Target }
  | { do: 'cancel'; job: number; reason: string | null; run: ExpectedRun }
  | { do: 'retry'; job: number; run: ExpectedRun; from: 'here' | 'start' | 'checkpoint' | 'both'; key: string }
  | { do: 'runNow'; job: number }
  | { do: 'advance'; hours: number }
  | { do: 'stage' }
  | { do: 'rescue' }
  | { do: 'recover' }
  | { do: 'prune' }
  | { do: 'fold' }
  | { do: 'boot' }
  | { do: 'leave'; worker: number }
  | { do: 'beat'; worker: number; draining: boolean; hung: boolean }
  | { do: 'past'; job: number; releases: number | null; postponements: number | null };

export type ActionOf<K extends Action['do']> = Extract<Action, { do: K }>;
export type Said = Exclude<AttemptOutcome, 'SUSPENDED' | 'STALLED' | 'NOT_ADVANCING'>;
/** A counted cursor says how many items it has behind it. */
export type SavedKind = 'STEP' | 'CURSOR' | 'COUNTED CURSOR';
export type ExpectedRun = 'any' | 'right' | 'wrong';

/** How a call and its answer travel: `lost` loses the answer of its n-th statement, and the caller asks again. */
export type Delivery = 'once' | 'twice' | { lost: number };

export interface Command {
  action: Action;
  delivery: Delivery;
  /** Also when it is foreseen to do nothing. Most of such are passed over: they would be most of all. */
  insist: boolean;
}

/** What mostly comes at a moment when there is nothing for it to do. */
export const OFTEN_IDLE: readonly Action['do'][] = [
  ...(['claim', 'delivered', 'cancel', 'retry', 'runNow', 'stage', 'rescue', 'recover', 'prune', 'past'] as const),
];
