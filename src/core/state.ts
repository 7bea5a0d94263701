/**
 * The state machine of a job, as data. It exists only here: CHECK constraints (`db/tables.ts`), guards in SQL
 * (`db/transitions/`), the chart in the README and the conformance tests are made from it or compared with it.
 */

/** Every state a job can be in. The last three are terminal: only an explicit retry leaves them, by opening a new run. */
export const JOB_STATES = [
  'DEFERRED',
  'SCHEDULED',
  'QUEUED',
  'RUNNING',
  'WAITING_FOR_REVIEW',
  'RETRYING',
  'COMPLETED',
  'FAILED',
  'CANCELED',
] as const;

export type JobState = (typeof JOB_STATES)[number];

/** States in which a run has ended. `finishedAt` is set in exactly these (a CHECK constraint says so too). */
export const TERMINAL_STATES = ['COMPLETED', 'FAILED', 'CANCELED'] as const satisfies readonly JobState[];

/** States from which a job goes on by itself or by somebody's decision. */
export const UNFINISHED_STATES = JOB_STATES.filter((s) => !isTerminal(s));

/** Whether a run has ended in this state. */
export function isTerminal(state: JobState): boolean {
  return (TERMINAL_STATES as readonly JobState[]).includes(state);
}

/** How an attempt ended. A running attempt has none. */
export const ATTEMPT_OUTCOMES = [
  'SUCCEEDED',
  'FAILED',
  'TIMED_OUT',
  'STALLED',
  'NOT_ADVANCING',
  'CANCELED',
  'SUSPENDED',
  'POSTPONED',
  'RELEASED',
] as const;

export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** Outcomes that use up one of a run's `maxAttempts`. The others are nobody's fault. */
export const BUDGET_OUTCOMES = [
  'FAILED',
  'TIMED_OUT',
  'STALLED',
  'NOT_ADVANCING',
] as const satisfies readonly AttemptOutcome[];

/** After this many RELEASED attempts in a row the next one counts as STALLED, so that a job nobody can run ends. */
export const MAX_RELEASES_IN_A_ROW = 20;

/** A run that suspended or postponed itself more often than this ends in FAILED. */
export const MAX_SUSPENSIONS = 1000;

/** One verb of the machine: the states it may be applied in, and the states it can lead to. */
export interface Transition {
  /** `null` stands for "no job yet". */
  readonly from: readonly (JobState | null)[];
  readonly to: readonly JobState[];
}

/**
 * Verb → allowed moves. A verb applied in any other state changes nothing.
 * CANCELED is reachable from every edge out of RUNNING except success and a final failure: a requested cancel wins.
 */
export const TRANSITIONS = {
  /** A client hands in a job. */
  submit: { from: [null], to: ['DEFERRED', 'SCHEDULED', 'QUEUED'] },
  /** Its time has come. */
  stage: { from: ['SCHEDULED', 'RETRYING'], to: ['QUEUED'] },
  /** Its dependencies or children are done. */
  ready: { from: ['DEFERRED'], to: ['QUEUED', 'SCHEDULED'] },
  /** A dependency did not complete, and the edge's policy says what that means. */
  upstreamFailed: { from: ['DEFERRED'], to: ['FAILED', 'CANCELED'] },
  /** A worker takes it. */
  claim: { from: ['QUEUED'], to: ['RUNNING'] },
  /** The handler returned. */
  complete: { from: ['RUNNING'], to: ['COMPLETED'] },
  /** The handler threw, or ran out of time. */
  fail: { from: ['RUNNING'], to: ['RETRYING', 'FAILED', 'CANCELED'] },
  /** The handler asked to come back later. */
  postpone: { from: ['RUNNING'], to: ['SCHEDULED', 'FAILED', 'CANCELED'] },
  /** The handler waits for people, time or children. */
  suspend: { from: ['RUNNING'], to: ['WAITING_FOR_REVIEW', 'SCHEDULED', 'DEFERRED', 'QUEUED', 'FAILED', 'CANCELED'] },
  /** A draining worker hands it back. */
  release: { from: ['RUNNING'], to: ['QUEUED', 'RETRYING', 'FAILED', 'CANCELED'] },
  /** Its worker's lease is over, or it did not advance. */
  rescue: { from: ['RUNNING'], to: ['QUEUED', 'RETRYING', 'FAILED', 'CANCELED'] },
  /** The handler stopped because of a cancel request, or was given up past the grace time. */
  stop: { from: ['RUNNING'], to: ['CANCELED'] },
  /** Somebody cancels. In RUNNING it is only requested: the worker then stops it. */
  cancel: {
    from: ['DEFERRED', 'SCHEDULED', 'QUEUED', 'RUNNING', 'WAITING_FOR_REVIEW', 'RETRYING'],
    to: ['CANCELED', 'RUNNING'],
  },
  /** An approval was decided or expired. */
  decide: { from: ['WAITING_FOR_REVIEW'], to: ['QUEUED'] },
  /** Somebody runs a waiting job now. */
  runNow: { from: ['SCHEDULED', 'RETRYING'], to: ['QUEUED'] },
  /** Somebody retries: a finished job opens its next run, a waiting one becomes due now. What it depends on goes first. */
  retry: { from: ['COMPLETED', 'FAILED', 'CANCELED', 'SCHEDULED', 'RETRYING'], to: ['QUEUED', 'DEFERRED'] },
  /** The upstream whose failure canceled it was retried. */
  revive: { from: ['CANCELED'], to: ['DEFERRED'] },
} as const satisfies Record<string, Transition>;

export type Verb = keyof typeof TRANSITIONS;

/** Whether `verb` may be applied to a job in `state` (`null`: no such job yet). */
export function allows(verb: Verb, state: JobState | null): boolean {
  return (TRANSITIONS[verb].from as readonly (JobState | null)[]).includes(state);
}
