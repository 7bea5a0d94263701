import type { DependencyPolicy } from '../core/job.ts';
import type { StandardSchemaV1 } from '../core/standard-schema.ts';
import type { TaskDefinition } from '../core/task.ts';
import type { Executor } from '../db/types.ts';
import type { Caller, SubmitRequest } from './types.ts';

/** One node of a graph to be submitted. */
export interface GraphNodeRequest {
  /** Unique within the graph. */
  name: string;
  job: SubmitRequest;
  /** Nodes that go before it, by name. Jobs outside the graph stand in `job.dependsOn`. */
  dependsOn?: readonly { node: string; policy?: DependencyPolicy | null }[] | null;
  /** As in SubmitOptions. */
  definition?: TaskDefinition;
  inputSchema?: StandardSchemaV1 | undefined;
}

export interface GraphRequest {
  /** For people. Default: the names of the first nodes. */
  title?: string | null;
  idempotencyKey?: string | null;
  nodes: readonly GraphNodeRequest[];
}

export interface SubmittedGraph {
  graphId: string;
  deduplicated: boolean;
  /** Name → stored id of its job. */
  jobs: Map<string, string>;
  /** With `tx`: call it after the commit. */
  wake: () => void;
}

export interface GraphsEngine {
  /**
   * All or nothing. With a key, the same graph again is answered with the one that is there.
   * @throws InvalidInput (cycles, unknown and duplicate names: with the node's name), UnknownTask, PayloadTooLarge,
   *   IdempotencyConflict (of a node's key), GraphIdempotencyConflict, NotFound (of a job outside); `path` is `nodes.NAME`
   */
  submitGraph(caller: Caller, request: GraphRequest, options?: { tx?: Executor }): Promise<SubmittedGraph>;
}
