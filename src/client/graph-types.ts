import type { JobState } from '../core/state.ts';
import type { Job, Progress } from './types.ts';

/** Jobs that were submitted together, with their dependencies: the same names as its GraphQL type. */
export interface Graph {
  /** `gra_…` */
  id: string;
  title: string;
  /** Grows with every change of any of its jobs; the client drops what is older than what it has given. */
  version: number;
  /** Rolled up from its jobs. */
  state: JobState;
  /** Rolled up: `current` of `total` jobs. */
  progress: Progress | null;
  /** How many of its jobs are in each state. */
  counts: { state: JobState; count: number }[];
  createdAt: string;
  finishedAt: string | null;
}

/** A job in its place in a graph. */
export interface GraphNode {
  /** Unique within the graph. */
  name: string;
  job: Job;
  /** The node's key stood for this job before. */
  deduplicated: boolean;
}

/** `to` waits for `from`; `policy` says what becomes of it when `from` does not complete. */
export interface GraphEdge {
  from: string;
  to: string;
  policy: 'CANCEL' | 'FAIL' | 'CONTINUE';
}

/** A graph with all that belongs to it. */
export interface WholeGraph extends Graph {
  /** In the order in which they were given. */
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** One message about a graph. */
export interface GraphChanged {
  graph: Graph;
  /** With `reset` all of them, else those that changed since the last message. */
  nodes: GraphNode[];
  /** Drop the nodes that you have. True in the first message, and when changes may have been missed. */
  reset: boolean;
}
