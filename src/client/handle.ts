import { GET_JOB, JOB_END, JOB_EVENTS, JOB_PROGRESS } from './documents.ts';
import { durationToMs } from './duration.ts';
import { JobCanceledError, JobFailedError, RequestError, WaitTimeoutError } from './errors.ts';
import { openStream } from './stream.ts';
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
  events(options?: { after?: number; signal?: AbortSignal }): AsyncIterableIterator<JobEvent>;
  /** The job now, then each time it changed: may skip, never goes back; the last value is the terminal one. */
  progress(options?: { signal?: AbortSignal }): AsyncIterableIterator<Job>;
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

  /** Whether a run has ended and a reader at `seq` has everything. */
  async function isOver(seq: number, signal: AbortSignal | undefined): Promise<boolean> {
    const data = await transport.request(JOB_END, { id }, { signal });
    const job = data.job as { isTerminal: boolean; lastSeq: number } | null;
    if (!job) throw new RequestError('NOT_FOUND', `job ${id} was not found`);
    return job.isTerminal && job.lastSeq <= seq;
  }

  function events({ after = 0, signal }: { after?: number; signal?: AbortSignal } = {}) {
    const variables = { id, after };
    return openStream<JobEvent>(transport, {
      query: JOB_EVENTS,
      variables,
      read(data) {
        const event = data.jobEvents as JobEvent;
        if (event.seq <= variables.after) return undefined;
        variables.after = event.seq;
        return event;
      },
      isTerminal: ({ type }) => type === 'JobCompleted' || type === 'JobFailed' || type === 'JobCanceled',
      isOver: () => isOver(variables.after, signal),
      latestOnly: false,
      signal,
    });
  }

  function progress({ signal }: { signal?: AbortSignal } = {}) {
    let version = -1;
    return openStream<Job>(transport, {
      query: JOB_PROGRESS,
      variables: { id },
      read(data) {
        const job = data.jobProgress as Job;
        if (job.version <= version) return undefined;
        version = job.version;
        return job;
      },
      isTerminal: (job) => job.isTerminal,
      // Without a terminal value the newest state was not seen yet, whatever it is.
      isOver: () => isOver(-1, signal),
      latestOnly: true,
      signal,
    });
  }

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
