'use client';
import { useCallback, useState } from 'react';
import type { InputIn, NameIn, ResultIn, SubmitOptions, SubmittedJob } from '../client/index.ts';
import type { SubmitArgs } from '../core/task.ts';
import { useWaymark } from './provider.ts';
import { useAction } from './use-action.ts';
import { type Live, useConnection } from './use-source.ts';

export interface SubmitJob<T, N extends NameIn<T>> extends Live<SubmittedJob<ResultIn<T, N>>> {
  /** As `client.submit`. Each call without a key of your own is a job of its own: `isLoading` tells when not to offer it. */
  submit(...args: SubmitArgs<InputIn<T, N>, SubmitOptions>): Promise<SubmittedJob<ResultIn<T, N>>>;
  /** Forgets the job and the error. */
  reset(): void;
}

/** Hands in jobs of one task. `data`: the last one, whose `id` the other hooks take; `isLoading`: one is being handed in. */
export function useSubmitJob<T = unknown, N extends NameIn<T> = NameIn<T>>(task: N): SubmitJob<T, N> {
  const client = useWaymark<T>();
  const connection = useConnection();
  const { act, clear, isActing, error } = useAction();
  const [data, setData] = useState<SubmittedJob<ResultIn<T, N>>>();
  const submit = useCallback(
    (...args: SubmitArgs<InputIn<T, N>, SubmitOptions>) => act(() => client.submit(task, ...args), setData),
    [client, task, act],
  );
  const reset = useCallback(() => {
    setData(undefined);
    clear();
  }, [clear]);
  return { data, error, isLoading: isActing, connection, submit, reset };
}
