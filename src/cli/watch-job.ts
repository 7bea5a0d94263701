import {
  type ConnectionState,
  type Job,
  JobCanceledError,
  JobFailedError,
  RequestError,
  WaitTimeoutError,
  type WaymarkClient,
} from '../client/index.ts';
import { parseDuration } from '../core/duration.ts';
import type { JobState } from '../core/state.ts';
import { reviewText } from './approval-text.ts';
import { UsageError } from './failure.ts';
import { type Io, print, printJson } from './io.ts';
import { createProgressDisplay } from './progress-line.ts';
import { type ClientFlags, withClient } from './service-client.ts';

/** A service that stays away longer than this while a job is watched is given up; the job is not concerned. */
const GIVE_UP_MS = 120_000;

/** States of a job that waits for something to be named, which the stream does not say. */
const WAITING: readonly JobState[] = ['QUEUED', 'DEFERRED', 'SCHEDULED', 'WAITING_FOR_REVIEW'];

export interface WatchFlags extends ClientFlags {
  timeout?: string;
}

/**
 * Shows live progress of the job that `start` names until its end, over broken connections and restarts of the
 * service, then prints it.
 * @throws JobFailedError, JobCanceledError, WaitTimeoutError, RequestError
 */
export async function watchJob(
  io: Io,
  flags: WatchFlags,
  start: (client: WaymarkClient<unknown>) => Promise<string>,
): Promise<void> {
  const timeoutMs = flags.timeout === undefined ? null : parseDuration(flags.timeout);
  if (flags.timeout !== undefined && timeoutMs === null) {
    throw new UsageError(`--timeout must be a duration such as "30s", not ${JSON.stringify(flags.timeout)}`);
  }
  const display = createProgressDisplay(io);
  const stop = new AbortController();
  const timeUp = Symbol('time up');
  let giveUp: NodeJS.Timeout | undefined;
  const onConnection = (state: ConnectionState) => {
    if (state === 'live' || state === 'polling') {
      clearTimeout(giveUp);
      giveUp = undefined;
      return;
    }
    if (!giveUp) display.note('connection lost; reconnecting…');
    giveUp ??= setTimeout(() => stop.abort(new RequestError('UNREACHABLE', 'the service stayed away')), GIVE_UP_MS);
  };
  const timer = timeoutMs === null ? undefined : setTimeout(() => stop.abort(timeUp), Math.min(timeoutMs, 2 ** 31 - 1));
  let last: Job | null = null;
  let id = '';
  const told = new Set<string>();
  const show = (job: Job): void => {
    const open = job.waitingOn?.approvals ?? [];
    display.show(job);
    for (const approval of open.filter((a) => !told.has(a.id))) {
      told.add(approval.id);
      display.say(reviewText(approval, open));
    }
  };
  const watch = async (client: WaymarkClient<unknown>): Promise<Job> => {
    id = await start(client);
    const handle = client.job(id);
    for (;;) {
      // The plain read first: a service that is away, or does not know the job, says so at once.
      last = await handle.get({ signal: stop.signal });
      if (!last) throw new RequestError('NOT_FOUND', `job ${id} was not found`);
      show(last);
      if (last.isTerminal) return last;
      for await (const job of handle.progress({ signal: stop.signal })) {
        // What the plain read gave may be newer than what had been received before.
        if (job.version < last.version) continue;
        // Without it, the state is shown all the same: the service may be restarting just now.
        const why = WAITING.includes(job.state) ? await handle.get({ signal: stop.signal }).catch(() => null) : null;
        last = { ...last, waitingOn: null, ...job, ...why };
        show(last);
      }
    }
  };
  try {
    const job = await withClient(io, flags, watch, onConnection);
    display.finish();
    printEnd(io, flags, job);
  } catch (error) {
    display.finish();
    throw error === timeUp ? new WaitTimeoutError(id, flags.timeout ?? '', last) : error;
  } finally {
    clearTimeout(timer);
    clearTimeout(giveUp);
  }
}

function printEnd(io: Io, flags: ClientFlags, job: Job): void {
  if (flags.json) printJson(io, job);
  else if (job.state === 'COMPLETED') print(io, JSON.stringify(job.result, null, 2));
  if (job.state === 'FAILED') throw new JobFailedError(job);
  if (job.state === 'CANCELED') throw new JobCanceledError(job);
}
