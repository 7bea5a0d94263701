'use client';
import { useMemo } from 'react';
import type { Approval, Decided, DecideOptions } from '../client/index.ts';
import { approvalSource } from './approval-sources.ts';
import { useWaymark } from './provider.ts';
import { useAction } from './use-action.ts';
import type { MaybeId } from './use-job.ts';
import { type Live, useSource } from './use-source.ts';

type Decide = (options?: Omit<DecideOptions, 'key' | 'digest'>) => Promise<Decided>;

export interface LiveApproval extends Live<Approval> {
  /** A decision is on its way. */
  isDeciding: boolean;
  /**
   * Undefined while whoever looks may not decide. What is decided is what is shown: when that has changed, it rejects with
   * `STALE_APPROVAL`. `error` shows what it rejected with until the next call.
   */
  approve: Decide | undefined;
  reject: Decide | undefined;
}

/** One approval with its votes, and the calls that decide it. */
export function useApproval(id: MaybeId): LiveApproval {
  const client = useWaymark();
  const { act, isActing, error: refused } = useAction();
  const live = useSource(useMemo(() => (id ? approvalSource(id) : null), [id]));
  return useMemo(() => {
    const { data: approval, error } = live;
    const decide = (verdict: 'approve' | 'reject'): Decide | undefined =>
      approval?.viewerCanDecide && approval.state === 'OPEN'
        ? (options) => act(() => client[verdict](approval.id, { ...options, digest: approval.digest }))
        : undefined;
    return {
      ...live,
      error: refused ?? error,
      isDeciding: isActing,
      approve: decide('approve'),
      reject: decide('reject'),
    };
  }, [client, live, act, isActing, refused]);
}
