import type { DependencyPolicy } from './job.ts';
import type { JobState } from './state.ts';

/** Jobs that were submitted together. */
export interface GraphRow {
  id: string;
  tenant: string;
  title: string;
  idempotencyKey: string | null;
  submittedBy: string;
  createdAt: string;
  prunedAt: string | null;
  edges: GraphEdge[];
}

/** One node waits for another, by their names. */
export interface GraphEdge {
  from: string;
  to: string;
  policy: DependencyPolicy;
}

export interface GraphNodeRow {
  graphId: string;
  name: string;
  jobId: string;
  /** The job of an idempotency key that existed before the graph. */
  deduplicated: boolean;
}

// The state of what is furthest on: while something runs the graph runs, whatever else waits.
const UNFINISHED_FIRST = ['RUNNING', 'QUEUED', 'RETRYING', 'WAITING_FOR_REVIEW', 'SCHEDULED', 'DEFERRED'] as const;

/**
 * The state of a graph from those of its nodes: while a node is unfinished, the state of the one that is furthest on;
 * else FAILED when any failed, CANCELED when any was canceled, COMPLETED when all completed.
 */
export function rollUp(states: Iterable<JobState>): JobState {
  const all = new Set(states);
  for (const state of UNFINISHED_FIRST) if (all.has(state)) return state;
  if (all.has('FAILED')) return 'FAILED';
  return all.has('CANCELED') ? 'CANCELED' : 'COMPLETED';
}
