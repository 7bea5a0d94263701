'use client';
import { useMemo } from 'react';
import type { Job, JobEvent } from '../client/index.ts';
import { eventsSource, jobSource, progressSource } from './job-sources.ts';
import { type Live, useSource } from './use-source.ts';

/** An id, or nothing yet: then nothing is loaded. */
export type MaybeId = string | null | undefined;

/**
 * A job with everything about it: progress, input, result, what it waits for, what may be done with it. It follows later
 * runs as well, and never goes back to an older version. `error`: RequestError, such as `NOT_FOUND`.
 */
export function useJob<R = unknown>(id: MaybeId): Live<Job & { result?: R }> {
  return useSource(useMemo(() => (id ? jobSource(id) : null), [id])) as Live<Job & { result?: R }>;
}

/** The same without input, result and waits: nothing but the stream, for a progress bar. */
export function useJobProgress(id: MaybeId): Live<Job> {
  return useSource(useMemo(() => (id ? progressSource(id) : null), [id]));
}

/** All facts behind `after` (default 0), in order, each once, over all runs. */
export function useJobEvents(id: MaybeId, { after = 0 }: { after?: number } = {}): Live<readonly JobEvent[]> {
  return useSource(useMemo(() => (id ? eventsSource(id, after) : null), [id, after]));
}
