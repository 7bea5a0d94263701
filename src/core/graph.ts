import type { DependencyPolicy, Timestamp } from './job.ts';
import type { ProgressState } from './progress.ts';
import { isTerminal, type JobState } from './state.ts';

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

/**
 * The first of these states that any node is in is the graph's: of what is furthest on, since while something runs the
 * graph runs, whatever else waits; then of the worst end.
 */
export const ROLL_UP_ORDER = [
  'RUNNING',
  'QUEUED',
  'RETRYING',
  'WAITING_FOR_REVIEW',
  'SCHEDULED',
  'DEFERRED',
  'FAILED',
  'CANCELED',
  'COMPLETED',
] as const satisfies readonly JobState[];

/**
 * The state of a graph from those of its nodes: while a node is unfinished, the state of the one that is furthest on;
 * else FAILED when any failed, CANCELED when any was canceled, COMPLETED when all completed.
 */
export function rollUp(states: Iterable<JobState>): JobState {
  const all = new Set(states);
  return ROLL_UP_ORDER.find((state) => all.has(state)) ?? 'COMPLETED';
}

/** What counts of the nodes of a graph that are in one state. */
export interface GraphTally {
  state: JobState;
  n: number;
  /** The versions of their jobs together. */
  versions: number;
  /** RUNNING: how many jobs their work so far would make. 0.5 is one job of which a half is done. */
  done: number;
  finishedAt: Timestamp | null;
  /** The last fact or progress report. */
  changedAt: Timestamp;
}

/** A graph as a whole, as its nodes make it. */
export interface GraphSummary {
  state: JobState;
  version: number;
  counts: Map<JobState, number>;
  /** Null when no node is left. */
  progress: ProgressState | null;
  finishedAt: Timestamp | null;
}

/** Rolls the nodes of a graph up. Without any, all of them are past their retention: it is COMPLETED, and says no more. */
export function summarize(tallies: readonly GraphTally[]): GraphSummary {
  const counts = new Map<JobState, number>();
  let [total, current, version] = [0, 0, 0];
  let finishedAt: Timestamp | null = null;
  let changedAt: Timestamp = '';
  for (const tally of tallies) {
    counts.set(tally.state, (counts.get(tally.state) ?? 0) + tally.n);
    total += tally.n;
    current += isTerminal(tally.state) ? tally.n : tally.done;
    version += tally.versions;
    // Texts of one form and one zone: in their order.
    if (tally.finishedAt !== null && tally.finishedAt > (finishedAt ?? '')) finishedAt = tally.finishedAt;
    if (tally.changedAt > changedAt) changedAt = tally.changedAt;
  }
  const state = rollUp(counts.keys());
  return {
    state,
    version,
    counts,
    progress: total === 0 ? null : { ...NO_PROGRESS, current, total, unit: 'jobs', updatedAt: changedAt },
    finishedAt: isTerminal(state) ? finishedAt : null,
  };
}

const NO_PROGRESS = {
  stage: null,
  stageIndex: null,
  stageCount: null,
  nextStage: null,
  message: null,
  data: null,
  ratePerSecond: null,
} satisfies Partial<ProgressState>;
