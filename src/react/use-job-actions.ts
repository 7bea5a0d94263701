'use client';
import { useMemo } from 'react';
import type { Decided, DecideOptions, Job, JobAction, WaymarkClient } from '../client/index.ts';
import { useWaymark } from './provider.ts';
import { useAction } from './use-action.ts';
import { type MaybeId, useJobProgress } from './use-job.ts';
import type { Live } from './use-source.ts';

type OptionsOf<K extends 'cancel' | 'retry'> = Omit<
  NonNullable<Parameters<WaymarkClient<unknown>[K]>[1]>,
  'expectedRun'
>;

export interface JobActions extends Live<readonly JobAction[]> {
  /** One of the calls is on its way. */
  isActing: boolean;
  /** Each is undefined while it is not allowed; it rejects with what `error` shows until the next call. */
  cancel: ((options?: OptionsOf<'cancel'>) => Promise<Job>) | undefined;
  /** Of the run that is shown: pressed twice, or in two tabs, it opens one run, and the other call is `INVALID_TRANSITION`. */
  retry: ((options?: OptionsOf<'retry'>) => Promise<Job>) | undefined;
  runNow: (() => Promise<Job>) | undefined;
  approve: ((options?: DecideOptions) => Promise<Decided>) | undefined;
  reject: ((options?: DecideOptions) => Promise<Decided>) | undefined;
}

/** What may be done with a job now, by its state and by who looks; `data` names it. */
export function useJobActions(id: MaybeId): JobActions {
  const client = useWaymark();
  const { data: job, error, isLoading, connection } = useJobProgress(id);
  const { act, isActing, error: refused } = useAction();
  return useMemo(() => {
    const allowed = new Set(job?.actions);
    const when = <F>(action: JobAction, call: F): F | undefined => (allowed.has(action) ? call : undefined);
    const { id: jobId = '', run: expectedRun } = job ?? {};
    return {
      data: job?.actions,
      error: refused ?? error,
      isLoading,
      connection,
      isActing,
      cancel: when('CANCEL', (o) => act(() => client.cancel(jobId, { ...o, expectedRun }))),
      retry: when('RETRY', (o) => act(() => client.retry(jobId, { ...o, expectedRun }))),
      runNow: when('RUN_NOW', () => act(() => client.runNow(jobId))),
      approve: when('APPROVE', (o) => act(() => client.approve(jobId, o))),
      reject: when('REJECT', (o) => act(() => client.reject(jobId, o))),
    } satisfies JobActions;
  }, [client, job, error, isLoading, connection, isActing, refused, act]);
}
