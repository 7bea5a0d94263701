'use client';
import type { ReactElement } from 'react';
import type { NameIn, WaymarkClient } from '../client/index.ts';
import { useWaymark, WaymarkProvider, type WaymarkProviderProps } from './provider.ts';
import { type SubmitJob, useSubmitJob } from './use-submit-job.ts';

/** The parts that know the tasks; all others are the same for every registry. */
export interface WaymarkHooks<T> {
  WaymarkProvider(props: WaymarkProviderProps<T>): ReactElement;
  useWaymark(): WaymarkClient<T>;
  useSubmitJob<N extends NameIn<T>>(task: N): SubmitJob<T, N>;
}

/**
 * The provider and the hooks of one registry of tasks: `createHooks<typeof import('./tasks.ts')>()`, once, in a file that
 * components import from. They are those of this module, with types.
 */
export function createHooks<T>(): WaymarkHooks<T> {
  return { WaymarkProvider, useWaymark, useSubmitJob } as WaymarkHooks<T>;
}
