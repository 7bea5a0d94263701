import type { Approval, ApprovalFilter } from './approval-types.ts';
import type { Poll } from './channel.ts';
import { RequestError } from './errors.ts';
import type { GraphChanged, GraphNode, WholeGraph } from './graph-types.ts';
import {
  APPROVALS_CHANGED,
  GET_GRAPH,
  GRAPH_PROGRESS,
  JOBS_CHANGED,
  POLL_APPROVALS,
  POLL_GRAPH,
  POLL_JOBS,
} from './live-documents.ts';
import { openStream } from './stream.ts';
import type { Transport } from './transport.ts';
import type { Job, JobFilter } from './types.ts';

export interface WatchOptions {
  /** Shortest time between two messages, such as `"1s"`; default `"250ms"`. */
  minInterval?: string;
  /** Its reason is thrown. Leaving the loop ends the watch as well. */
  signal?: AbortSignal;
}

export interface JobsChanged {
  /** Jobs that changed and matched before or match now, each once, as they are now. */
  jobs: Job[];
  /** (Re)read the list now: the first message, and again when changes may have been missed. `jobs` is empty then. */
  reset: boolean;
}

export interface ApprovalsChanged {
  /** Approvals that may have changed, in whatever state they are now. */
  approvals: Approval[];
  /** As in `JobsChanged`. */
  reset: boolean;
  /** How many open ones match the filter now. */
  openCount: number;
}

/** The part of a client that watches more than one job. None of these ends by itself, but `watchGraph`. */
export interface WatchMethods {
  /** Changes of the jobs of a filter, for a list; while streams cannot be opened, a reset about once a second. @throws RequestError */
  watch(filter?: JobFilter, options?: WatchOptions): AsyncIterableIterator<JobsChanged>;
  /**
   * A graph with all its nodes, then what changed: may skip, never goes back. Ends when all nodes are terminal, unless
   * `untilTerminal` is false. @throws RequestError: `NOT_FOUND`
   */
  watchGraph(id: string, options?: WatchOptions & { untilTerminal?: boolean }): AsyncIterableIterator<GraphChanged>;
  /** Approvals as they open, are voted on and close. Default: the open ones. @throws RequestError */
  watchApprovals(filter?: ApprovalFilter, options?: { signal?: AbortSignal }): AsyncIterableIterator<ApprovalsChanged>;
  /** A graph with its nodes and edges, or null when there is none of this id. @throws RequestError */
  graph(id: string): Promise<WholeGraph | null>;
}

export function createWatchMethods(transport: Transport): WatchMethods {
  /** A stream of messages of which each counts, and which never ends by itself. */
  function openWatch<T>(
    field: string,
    query: string,
    variables: Record<string, unknown>,
    poll: Poll,
    signal?: AbortSignal,
  ) {
    return openStream<T>(transport, {
      operation: { query, variables, poll: () => poll },
      read: (data) => data[field] as T,
      isTerminal: () => false,
      isOver: async () => false,
      latestOnly: false,
      signal,
    });
  }

  return {
    watch(filter, { minInterval, signal } = {}) {
      const poll: Poll = async (ask) => {
        // What has left the list cannot be asked for: only whether there is somebody who would answer.
        await ask(POLL_JOBS, { filter });
        return { messages: [{ jobsChanged: { jobs: [], reset: true } }], blind: true };
      };
      return openWatch('jobsChanged', JOBS_CHANGED, { filter, minInterval }, poll, signal);
    },
    watchApprovals({ mine, ...filter } = {}, { signal } = {}) {
      const where = { states: ['OPEN'], ...filter, ...(mine ? { viewerCanDecide: true } : {}) };
      const poll: Poll = async (ask) => {
        const data = await ask(POLL_APPROVALS, { filter: { ...where, states: ['OPEN'] } });
        const openCount = (data.approvals as { totalCount: number | null }).totalCount ?? 10_000;
        return { messages: [{ approvalsChanged: { approvals: [], reset: true, openCount } }], blind: true };
      };
      return openWatch('approvalsChanged', APPROVALS_CHANGED, { filter: where }, poll, signal);
    },
    watchGraph(id, { minInterval, untilTerminal = true, signal } = {}) {
      let version = -1;
      let size = 0;
      let hasEnded = false;
      return openStream<GraphChanged>(transport, {
        operation: {
          query: GRAPH_PROGRESS,
          variables: { id, minInterval, untilTerminal },
          poll: pollGraph(id, untilTerminal),
        },
        read(data) {
          const message = data.graphProgress as GraphChanged;
          const nodes = message.graph.counts.reduce((sum, { count }) => sum + count, 0);
          // What an older message says comes in a later one too. Only retention, which takes nodes away, lowers a version.
          if (message.graph.version < version && nodes >= size) return undefined;
          version = message.graph.version;
          size = nodes;
          hasEnded = untilTerminal && message.graph.finishedAt !== null;
          return message;
        },
        isTerminal: () => hasEnded,
        isOver: async () => hasEnded,
        latestOnly: false,
        signal,
      });
    },
    async graph(id) {
      return ((await transport.request(GET_GRAPH, { id }, { retries: 3 })).graph as WholeGraph | null) ?? null;
    },
  };
}

function pollGraph(id: string, untilTerminal: boolean): () => Poll {
  return () => {
    let polled = -1;
    return async (ask) => {
      const whole = (await ask(POLL_GRAPH, { id })).graph as (GraphChanged['graph'] & { nodes: GraphNode[] }) | null;
      if (!whole) throw new RequestError('NOT_FOUND', `graph ${id} was not found`);
      const { nodes, ...graph } = whole;
      const isNew = graph.version !== polled;
      polled = graph.version;
      return {
        messages: isNew ? [{ graphProgress: { graph, nodes, reset: true } }] : [],
        complete: untilTerminal && graph.finishedAt !== null,
      };
    };
  };
}
