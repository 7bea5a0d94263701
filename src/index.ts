/** `waymark`: tasks, back end, worker and server. The client for front ends is `waymark/client`. */

export type { ApprovalSnapshot } from './approval-snapshot.ts';
export type { ArtifactData } from './artifacts/gather.ts';
export type { SettingOptions } from './config.ts';
export type { ArtifactRecord } from './core/artifact.ts';
export type { BackoffOptions } from './core/backoff.ts';
export {
  AlreadyDecided,
  CursorInvalid,
  DataDirInUse,
  GraphIdempotencyConflict,
  IdempotencyConflict,
  IncompatibleDatabase,
  type InputIssue,
  InsideTransaction,
  InvalidId,
  InvalidInput,
  InvalidSettings,
  InvalidTransition,
  LeaseLost,
  LimitExceeded,
  NotAllowed,
  NotFound,
  NotWaiting,
  PayloadTooLarge,
  StaleApproval,
  Unavailable,
  UnknownTask,
  WaymarkError,
} from './core/errors.ts';
export {
  type AbortKind,
  ApprovalRejectedError,
  AttemptAborted,
  ChildFailedError,
  DuplicateKeyError,
  MixedWaitError,
  NonRetryableError,
  RetryLater,
  StepTimeoutError,
  WaitInsideStepError,
} from './core/handler-errors.ts';
export type { Jsonify, JsonValue } from './core/json.ts';
export type { Logger } from './core/log.ts';
export type { Outcome } from './core/outcome.ts';
export type { ProgressReport } from './core/progress.ts';
export type { StandardSchemaV1 } from './core/standard-schema.ts';
export type { AttemptOutcome, JobState } from './core/state.ts';
export type { AnyTask, InputOf, NameOf, ResultOf, Task } from './core/task.ts';
export type { UserDb, UserTx } from './db/types.ts';
export type { SubmitJobOptions } from './engine/submit-options.ts';
export type { Setup } from './foundation.ts';
export type { JobSnapshot } from './job-snapshot.ts';
export type { RunningServer } from './parts.ts';
export type { QueueSnapshot } from './queue-snapshot.ts';
export type { ScheduleSnapshot } from './schedule-snapshot.ts';
export { createWaymark, type SubmitItem, type SubmitResult, type Waymark, type WaymarkOptions } from './waymark.ts';
export type { DecideOptions, DecideResult } from './waymark-approvals.ts';
export type { GraphNodes, GraphUpstream, RemovedJob, SubmitGraphResult } from './waymark-graphs.ts';
export type { ScheduledInput, ScheduleOptions } from './waymark-schedules.ts';
export type {
  ArtifactOptions,
  BatchInfo,
  BatchOptions,
  BatchResult,
  HandlerContext,
  HandlerLog,
  StepInfo,
  StepOptions,
} from './worker/context.ts';
export { defineTask, type TaskOptions } from './worker/define-task.ts';
export type {
  ApprovalDecision,
  ApprovalOptions,
  Approved,
  ChildOutcomes,
  ChildResults,
  ChildrenOptions,
  ChildSpecs,
  Rejected,
} from './worker/wait-types.ts';
export type { Worker } from './worker/worker.ts';
