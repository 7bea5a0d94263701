'use client';
/** `waymark/react`: hooks on top of `waymark/client`. Headless: they render nothing. */
export type { ConnectionState } from '../client/index.ts';
export { createHooks, type WaymarkHooks } from './create-hooks.ts';
export type { GraphView } from './graph-source.ts';
export type { JobsOptions } from './jobs-source.ts';
export { useWaymark, WaymarkProvider, type WaymarkProviderProps } from './provider.ts';
export { type LiveApproval, useApproval } from './use-approval.ts';
export { type MaybeId, useJob, useJobEvents, useJobProgress } from './use-job.ts';
export { type JobActions, useJobActions } from './use-job-actions.ts';
export { type LiveApprovals, useApprovals, useGraph, useJobs } from './use-lists.ts';
export { type Live, useConnection } from './use-source.ts';
export { type SubmitJob, useSubmitJob } from './use-submit-job.ts';
