import { GET_JOB } from './documents.ts';
import { durationToMs } from './duration.ts';
import { JobCanceledError, JobFailedError, RequestError, WaitTimeoutError } from './errors.ts';
import { type JobStreamOptions, openEvents, openProgress } from './job-streams.ts';
import type { Transport } from './transport.ts';
import type { Job, JobEvent } from './types.ts';
import { pause } from './waiting.ts';

/** One job of the service. It holds nothing but the id: make as many as you like. */
export interface JobHandle<R = unknown> {
  /** `job_…` */
  readonly id: string;
  /** The job as it is now, or null when there is none of this id (any more). @throws RequestError */
  get(options?: { signal?: AbortSignal }): Promise<Job | null>;
  /**
   * Waits for the end and gives the result, over broken connections and restarts of the service.
   * @throws JobFailedError, JobCanceledError, WaitTimeoutError after `timeout` (milliseconds or `"30s"`; default: no
   *   limit), the signal's reason, RequestError (`NOT_FOUND`)
   */
  result(options?: { signal?: AbortSignal; timeout?: string | number }): Promise<R>;
  /**
   * Facts behind `after` (default 0: all), in order, each exactly once, up to the end of the current run.
   * Leave the loop, or fire the signal, to stop listening.
   */
  events(options?: JobStreamOptions & { after?: number }): AsyncIterableIterator<JobEvent>;
  /** The job now, then each time it changed: may skip, never goes back; the last value is the terminal one. */
  progress(options?: JobStreamOptions): AsyncIterableIterator<Job>;
}

/** What `submit` gives: `deduplicated` says that the key's job existed before. */
export interface SubmittedJob<R = unknown> extends JobHandle<R> {
  readonly deduplicated: boolean;
  /** As of the submit. */
  readonly job: Job;
}

export function createHandle<R>(transport: Transport, id: string): JobHandle<R> {
  async function get({ signal }: { signal?: AbortSignal } = {}): Promise<Job | null> {
    const data = await transport.request(GET_JOB, { id }, { signal, retries: 3 });
    return (data.job as Job | null) ?? null;
  }

  const events = (options?: JobStreamOptions & { after?: number }) => openEvents(transport, id, options);
  const progress = (options?: JobStreamOptions) => openProgress(transport, id, options);

  async function result(options: { signal?: AbortSignal; timeout?: string | number } = {}): Promise<R> {
    const stop = new AbortController();
    const onAbort = () => stop.abort(options.signal?.reason);
    if (options.signal?.aborted) onAbort();
    options.signal?.addEventListener('abort', onAbort, { once: true });
    let last: Job | null = null;
    const watch = async (): Promise<R> => {
      for (;;) {
        for await (const job of progress({ signal: stop.signal })) last = job;
        const job = await get({ signal: stop.signal });
        if (!job) throw new RequestError('NOT_FOUND', `job ${id} was not found`);
        // Else somebody opened the next run between the two.
        if (job.isTerminal) return outcomeOf<R>(job);
        last = job;
      }
    };
    const watching = watch();
    try {
      if (options.timeout === undefined) return await watching;
      const timeUp = pause(durationToMs(options.timeout), stop.signal).then(() => 'time-up' as const);
      const first = await Promise.race([watching.then((value) => ({ value })), timeUp]);
      if (first !== 'time-up') return first.value;
      const now = await get({ signal: AbortSignal.timeout(2_000) }).catch(() => last);
      if (now?.isTerminal) return outcomeOf<R>(now);
      throw new WaitTimeoutError(id, String(options.timeout), now);
    } finally {
      options.signal?.removeEventListener('abort', onAbort);
      watching.catch(() => {});
      stop.abort(new RequestError('CLIENT_CLOSED', 'the wait is over'));
    }
  }

  return { id, get, result, events, progress };
}

function outcomeOf<R>(job: Job): R {
  if (job.state === 'FAILED') throw new JobFailedError(job);
  if (job.state === 'CANCELED') throw new JobCanceledError(job);
  return job.result as R;
}
