import {
  CHECKPOINT_KINDS,
  type CheckpointKind,
  DEPENDENCY_POLICIES,
  type DependencyPolicy,
  type WorkerState,
} from '../core/job.ts';
import { OVERLAP_POLICIES, type OverlapPolicy } from '../core/schedule.ts';
import { ATTEMPT_OUTCOMES, type AttemptOutcome, JOB_STATES, type JobState } from '../core/state.ts';
import { JOB_ORDERS, type JobOrder } from '../db/reads/job-list.ts';
import { builder } from './builder.ts';

/** An enum whose values are those of the core, each with its meaning: a value without one does not compile. */
function enumOf<V extends string>(name: string, description: string, values: readonly V[], meaning: Record<V, string>) {
  return builder.enumType(name, {
    description,
    values: Object.fromEntries(values.map((v) => [v, { value: v, description: meaning[v] }])) as Record<
      V,
      { value: V; description: string }
    >,
  });
}

export const JobStateEnum = enumOf<JobState>('JobState', 'Where a job is in its life. Closed.', JOB_STATES, {
  DEFERRED: 'Waits for other jobs.',
  SCHEDULED: 'Waits for its time (`runAt`).',
  QUEUED: 'In line: a worker may take it.',
  RUNNING: 'A worker is at it.',
  WAITING_FOR_REVIEW: 'Waits for people to decide. It holds no slot of a worker.',
  RETRYING: 'An attempt failed; the next one comes at `runAt`.',
  COMPLETED: 'Terminal: the handler returned.',
  FAILED: 'Terminal: the budget of attempts is spent, or the error was not to be retried.',
  CANCELED: 'Terminal: somebody canceled it, or what it depended on was not completed.',
});

export const AttemptOutcomeEnum = enumOf<AttemptOutcome>(
  'AttemptOutcome',
  'How an attempt ended. Closed. FAILED, TIMED_OUT, STALLED and NOT_ADVANCING use up one of `maxAttempts`.',
  ATTEMPT_OUTCOMES,
  {
    SUCCEEDED: 'The handler returned.',
    FAILED: 'The handler threw.',
    TIMED_OUT: 'It ran longer than the `timeout` of its job.',
    STALLED: 'The lease of its worker is over: the worker died or was cut off.',
    NOT_ADVANCING: 'Neither progress nor checkpoint for longer than the task allows.',
    CANCELED: 'The handler stopped because somebody canceled the job.',
    SUSPENDED: 'The handler waits for people, time or other jobs.',
    POSTPONED: 'The handler asked to be called again later.',
    RELEASED: 'Handed back by a worker that shut down, or never received by it.',
  },
);

export const CheckpointKindEnum = enumOf<CheckpointKind>(
  'CheckpointKind',
  'What a checkpoint holds.',
  CHECKPOINT_KINDS,
  {
    STEP: 'The result of a step or transaction: written once, never done again.',
    CURSOR: 'How far a run of batches has come.',
    APPROVAL: 'What people decided.',
    SLEEP: 'When to wake up.',
    CHILDREN: 'The jobs that this one started.',
    VALUE: 'A value that the handler saved.',
  },
);

export const JobHealthEnum = enumOf(
  'JobHealth',
  'How a running job is doing, judged from lease, heartbeat and last advance. Jobs that do not run are OK.',
  ['OK', 'STALLED', 'NOT_ADVANCING', 'LOOP_BLOCKED'],
  {
    OK: 'As it should be.',
    STALLED: 'The lease of its worker is over; the job is about to be handed to another.',
    NOT_ADVANCING: 'Its worker lives, but there was neither progress nor checkpoint for longer than the task allows.',
    LOOP_BLOCKED: 'A handler blocks the event loop of its worker.',
  },
);

export const JobActionEnum = enumOf(
  'JobAction',
  'Something to do with a job, by the mutation of that name.',
  ['CANCEL', 'RETRY', 'RUN_NOW', 'APPROVE', 'REJECT'],
  {
    CANCEL: '`cancelJob`',
    RETRY: '`retryJob`',
    RUN_NOW: '`runJobNow`',
    APPROVE: '`approveJob`',
    REJECT: '`rejectJob`',
  },
);

/** Kinds of waiting, in the order of the contract. */
export const WAITING_KINDS = [
  'DEPENDENCIES',
  'CHILDREN',
  'DUE_TIME',
  'SLEEP',
  'RETRY_DELAY',
  'REVIEW',
  'QUEUE_PAUSED',
  'NO_WORKER',
  'CAPACITY',
  'MAX_RUNNING',
  'RATE_LIMIT',
  'CONCURRENCY_KEY',
] as const;
export type WaitingKind = (typeof WAITING_KINDS)[number];

export const WaitingKindEnum = enumOf<WaitingKind>('WaitingKind', 'Why a job is not running.', WAITING_KINDS, {
  DEPENDENCIES: 'Jobs that it depends on are not finished.',
  CHILDREN: 'Jobs that it started are not finished.',
  DUE_TIME: 'Its time has not come.',
  SLEEP: 'Its handler sleeps.',
  RETRY_DELAY: 'It waits between two attempts.',
  REVIEW: 'People have to decide.',
  QUEUE_PAUSED: 'Its queue is paused.',
  NO_WORKER: 'No live worker takes this task from this queue.',
  CAPACITY: 'All slots of the live workers are busy.',
  MAX_RUNNING: 'Its queue runs as many jobs as it may.',
  RATE_LIMIT: 'Its queue started as many jobs as it may for now.',
  CONCURRENCY_KEY: 'Another job with its concurrency key goes first.',
});

export const JobOrderEnum = enumOf<JobOrder>(
  'JobOrder',
  'Order of a list of jobs. Among equals the id decides.',
  JOB_ORDERS,
  {
    CREATED_DESC: 'Newest first.',
    CREATED_ASC: 'Oldest first.',
    UPDATED_DESC: 'Last changed first (facts, not progress).',
    RUN_AT_ASC: 'Due first.',
    FINISHED_DESC: 'Last finished first; behind them the unfinished ones, last changed first.',
  },
);

export const WorkerStateEnum = enumOf<WorkerState>(
  'WorkerState',
  'Whether a worker lives.',
  ['ACTIVE', 'DRAINING', 'LOST'],
  {
    ACTIVE: 'Takes jobs.',
    DRAINING: 'Finishes what it runs and takes nothing new.',
    LOST: 'Its lease is over, for ever: it died, was cut off, or has stopped.',
  },
);

export const KeyScopeEnum = enumOf(
  'KeyScope',
  'How long an idempotency key stands for its job.',
  ['RETENTION', 'UNTIL_FINISHED'],
  {
    RETENTION: 'Until the key’s retention (30 days unless configured), whatever becomes of the job.',
    UNTIL_FINISHED: 'Until the job is finished; until then every submit returns that job, whatever the input.',
  },
);

export const OverlapPolicyEnum = enumOf<OverlapPolicy>(
  'OverlapPolicy',
  'What happens when a schedule is due while its last job is unfinished.',
  OVERLAP_POLICIES,
  {
    SKIP: 'No job for this time.',
    ALLOW: 'Another job.',
  },
);

export const BackoffTypeEnum = enumOf('BackoffType', 'How waits between attempts grow.', ['FIXED', 'EXPONENTIAL'], {
  FIXED: 'They do not: always `delay`.',
  EXPONENTIAL: '`delay × factor^(n−1)` before the n-th retry.',
});

export const DependencyPolicyEnum = enumOf<DependencyPolicy>(
  'DependencyPolicy',
  'What a job that did not complete does to those that depend on it. Closed.',
  DEPENDENCY_POLICIES,
  {
    CANCEL: 'The dependant is CANCELED; when the other one is retried, it waits again.',
    FAIL: 'The dependant is FAILED with DEPENDENCY_FAILED.',
    CONTINUE: 'The dependant runs all the same.',
  },
);
