import { WebSocket } from 'ws';
import { createClient, type Job, RequestError, type WaymarkClient } from '../../../src/client/index.ts';

/** What one subscriber was told, and when it was told that this is all. */
export type Record =
  | { kind: 'events'; jobId: string; events: { seq: number; type: string; state: string }[]; ended: Promise<void> }
  | { kind: 'progress'; jobId: string; values: { version: number; state: string }[]; ended: Promise<void> }
  | { kind: 'list'; jobs: Map<string, { version: number; state: string }>; resets: number; ended: Promise<void> };

export interface Subscribers {
  readonly records: readonly Record[];
  /** How many went through each state of the connection. */
  readonly connections: Readonly<{ [state: string]: number }>;
  /** Ends the lists, which have no end of their own, and every client. */
  close(): Promise<void>;
}

const PAGE = 100;

/**
 * Subscribers of all kinds and ways, each with a client of its own: events and progress of one job, lists of all.
 * @param urls where they connect, in turn
 */
export function subscribe(urls: readonly string[], jobIds: readonly string[], count: number): Subscribers {
  const clients: WaymarkClient<unknown>[] = [];
  const connections: { [state: string]: number } = {};
  const stops: AbortController[] = [];
  const records = Array.from({ length: count }, (_, i): Record => {
    const transport = (['auto', 'ws', 'auto', 'sse', 'ws'] as const)[i % 5] ?? 'auto';
    const client = createClient({ url: urls[i % urls.length] ?? '', transport, webSocket: WebSocket });
    clients.push(client);
    client.onConnection((state) => {
      connections[state] = (connections[state] ?? 0) + 1;
    });
    if (i % 10 === 9) {
      const stop = new AbortController();
      stops.push(stop);
      return listOf(client, stop.signal);
    }
    const jobId = jobIds[i % jobIds.length] ?? '';
    return i % 10 < 7 ? eventsOf(client, jobId) : progressOf(client, jobId);
  });
  return {
    records,
    connections,
    async close() {
      for (const stop of stops) stop.abort();
      await Promise.all(clients.map((client) => client.close()));
    },
  };
}

function eventsOf(client: WaymarkClient<unknown>, jobId: string): Record {
  const events: { seq: number; type: string; state: string }[] = [];
  const follow = async () => {
    for await (const { seq, type, state } of client.job(jobId).events()) events.push({ seq, type, state });
  };
  return { kind: 'events', jobId, events, ended: follow() };
}

function progressOf(client: WaymarkClient<unknown>, jobId: string): Record {
  const values: { version: number; state: string }[] = [];
  const follow = async () => {
    for await (const { version, state } of client.job(jobId).progress()) values.push({ version, state });
  };
  return { kind: 'progress', jobId, values, ended: follow() };
}

/** A list as the docs say: read at each reset, then kept by what is told. */
function listOf(client: WaymarkClient<unknown>, signal: AbortSignal): Record {
  const record = { kind: 'list' as const, jobs: new Map<string, { version: number; state: string }>(), resets: 0 };
  const take = ({ id, version, state }: Job) => {
    if ((record.jobs.get(id)?.version ?? 0) < version) record.jobs.set(id, { version, state });
  };
  const follow = async () => {
    try {
      for await (const { jobs, reset } of client.watch({ tags: ['watched'] }, { minInterval: '1s', signal })) {
        if (!reset) jobs.forEach(take);
        else {
          record.resets++;
          for (const job of await readAll(client, signal)) take(job);
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
  return {
    ...record,
    get resets() {
      return record.resets;
    },
    ended: follow(),
  };
}

async function readAll(client: WaymarkClient<unknown>, signal: AbortSignal): Promise<Job[]> {
  const all: Job[] = [];
  for (let after: string | undefined; ; ) {
    try {
      const page = await client.jobs({ tags: ['watched'] }, { first: PAGE, ...(after ? { after } : {}) });
      all.push(...page.jobs);
      if (!page.hasNextPage || page.endCursor === null) return all;
      after = page.endCursor;
    } catch (error) {
      // The API is away for longer than the client tries by itself.
      if (signal.aborted || !(error instanceof RequestError && error.isUnavailable)) throw error;
    }
  }
}
