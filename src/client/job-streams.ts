import type { Poll } from './channel.ts';
import { JOB_END, JOB_EVENTS, JOB_PROGRESS } from './documents.ts';
import { RequestError } from './errors.ts';
import { POLL_EVENTS, POLL_PROGRESS } from './live-documents.ts';
import { openStream } from './stream.ts';
import type { Transport } from './transport.ts';
import type { Job, JobEvent } from './types.ts';

export interface JobStreamOptions {
  signal?: AbortSignal;
  /** False: stay open over later runs, until the signal or the end of the loop. Default true. */
  untilTerminal?: boolean;
}

const ENDS: readonly string[] = ['JobCompleted', 'JobFailed', 'JobCanceled'] satisfies JobEvent['type'][];

export function openEvents(
  transport: Transport,
  id: string,
  { after = 0, signal, untilTerminal = true }: JobStreamOptions & { after?: number } = {},
): AsyncIterableIterator<JobEvent> {
  const variables = { id, after, untilTerminal };
  const poll = (): Poll => async (ask) => {
    const job = found(id, (await ask(POLL_EVENTS, { id, after: variables.after })).job as PolledEvents | null);
    const { nodes, hasMore } = job.events;
    const end = nodes.at(-1)?.seq ?? variables.after;
    return {
      messages: nodes.map((jobEvents) => ({ jobEvents })),
      more: hasMore,
      complete: untilTerminal && job.isTerminal && end === job.lastSeq,
    };
  };
  return openStream<JobEvent>(transport, {
    operation: { query: JOB_EVENTS, variables, poll },
    read(data) {
      const event = data.jobEvents as JobEvent;
      if (event.seq <= variables.after) return undefined;
      variables.after = event.seq;
      return event;
    },
    isTerminal: ({ type }) => untilTerminal && ENDS.includes(type),
    isOver: async () => untilTerminal && (await isOver(transport, id, variables.after, signal)),
    latestOnly: false,
    signal,
  });
}

interface PolledEvents {
  isTerminal: boolean;
  lastSeq: number;
  events: { nodes: JobEvent[]; hasMore: boolean };
}

export function openProgress(
  transport: Transport,
  id: string,
  { signal, untilTerminal = true }: JobStreamOptions = {},
): AsyncIterableIterator<Job> {
  let version = -1;
  const poll = (): Poll => {
    let polled = -1;
    return async (ask) => {
      const job = found(id, (await ask(POLL_PROGRESS, { id })).job as Job | null);
      const isNew = job.version > polled;
      polled = job.version;
      return { messages: isNew ? [{ jobProgress: job }] : [], complete: untilTerminal && job.isTerminal };
    };
  };
  return openStream<Job>(transport, {
    operation: { query: JOB_PROGRESS, variables: { id, untilTerminal }, poll },
    read(data) {
      const job = data.jobProgress as Job;
      if (job.version <= version) return undefined;
      version = job.version;
      return job;
    },
    isTerminal: (job) => untilTerminal && job.isTerminal,
    // Without a terminal value the newest state was not seen yet, whatever it is.
    isOver: async () => untilTerminal && (await isOver(transport, id, -1, signal)),
    latestOnly: true,
    signal,
  });
}

/** Whether a run has ended and a reader at `seq` has everything. */
async function isOver(transport: Transport, id: string, seq: number, signal: AbortSignal | undefined) {
  const data = await transport.request(JOB_END, { id }, { signal });
  const job = found(id, data.job as { isTerminal: boolean; lastSeq: number } | null);
  return job.isTerminal && job.lastSeq <= seq;
}

function found<T>(id: string, job: T | null): T {
  if (!job) throw new RequestError('NOT_FOUND', `job ${id} was not found`);
  return job;
}
