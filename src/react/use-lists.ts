'use client';
import { useMemo } from 'react';
import type { Approval, ApprovalFilter, Job, JobFilter } from '../client/index.ts';
import { approvalsSource } from './approval-sources.ts';
import { type GraphView, graphSource } from './graph-source.ts';
import { type JobsOptions, jobsSource } from './jobs-source.ts';
import type { MaybeId } from './use-job.ts';
import { keyOf, type Live, useSource } from './use-source.ts';

/** One page of jobs, kept up to date. The filter may be written in place: equal ones are one. */
export function useJobs(filter: JobFilter = {}, options: JobsOptions = {}): Live<readonly Job[]> {
  const key = keyOf([filter, options]);
  const source = useMemo(() => {
    const [where, page] = JSON.parse(key) as [JobFilter, JobsOptions];
    return jobsSource(key, where, page);
  }, [key]);
  return useSource(source);
}

/** A graph with all its nodes and edges, over later runs of its jobs too. */
export function useGraph(id: MaybeId): Live<GraphView> {
  return useSource(useMemo(() => (id ? graphSource(id) : null), [id]));
}

export interface LiveApprovals extends Live<readonly Approval[]> {
  /** All open ones that match, for a badge; undefined until it is known. */
  openCount: number | undefined;
}

/** Approvals, by default the open ones; `{ mine: true }`: those that whoever looks may decide. */
export function useApprovals(filter: ApprovalFilter = {}): LiveApprovals {
  const key = keyOf(filter);
  const source = useMemo(() => approvalsSource(key, JSON.parse(key) as ApprovalFilter), [key]);
  const live = useSource(source);
  return useMemo(() => ({ ...live, data: live.data?.approvals, openCount: live.data?.openCount }), [live]);
}
