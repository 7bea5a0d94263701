/** `waymark/client`: the typed client. It speaks only GraphQL and runs in browsers and in Node. */
export type { Approval, ApprovalFilter, ApprovalPage, DecideOptions, Decision } from './approval-types.ts';
export type { ApprovalMethods, Decided } from './approvals.ts';
export type { ConnectionState } from './channel.ts';
export { type ClientOptions, createClient, type WaymarkClient } from './create-client.ts';
export { type ClientCode, JobCanceledError, JobFailedError, RequestError, WaitTimeoutError } from './errors.ts';
export type { Graph, GraphChanged, GraphEdge, GraphNode, WholeGraph } from './graph-types.ts';
export type { JobHandle, SubmittedJob } from './handle.ts';
export type { JobStreamOptions } from './job-streams.ts';
export type { ByName, InputIn, NameIn, ResultIn } from './registry.ts';
export type {
  Artifact,
  BulkOptions,
  BulkResult,
  Job,
  JobAction,
  JobError,
  JobEvent,
  JobFilter,
  Progress,
  SubmitOptions,
  WaitingOn,
} from './types.ts';
export type { ApprovalsChanged, JobsChanged, WatchMethods, WatchOptions } from './watches.ts';
