/** `waymark`: tasks, back end, worker and server. The client for front ends is `waymark/client`. */

export type { ArtifactData } from './artifacts/gather.ts';
export type { SettingOptions } from './config.ts';
export type { ArtifactRecord } from './core/artifact.ts';
export type { BackoffOptions } from './core/backoff.ts';
export {
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
  NotFound,
  PayloadTooLarge,
  Unavailable,
  UnknownTask,
  WaymarkError,
} from './core/errors.ts';
export {
  type AbortKind,
  AttemptAborted,
  DuplicateKeyError,
  NonRetryableError,
  RetryLater,
  StepTimeoutError,
} from './core/handler-errors.ts';
export type { Jsonify, JsonValue } from './core/json.ts';
export type { Logger } from './core/log.ts';
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
export type { GraphNodes, GraphUpstream, RemovedJob, SubmitGraphResult } from './waymark-graphs.ts';
export type { ScheduledInput, ScheduleOptions } from './waymark-schedules.ts';
export type {
  ArtifactOptions,
  BatchInfo,
  BatchOptions,
  BatchResult,
  HandlerContext,
  StepInfo,
  StepOptions,
} from './worker/context.ts';
export { defineTask, type TaskOptions } from './worker/define-task.ts';
export type { Worker } from './worker/worker.ts';
