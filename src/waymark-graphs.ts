import { publicId } from './core/ids.ts';
import type { DependencyPolicy } from './core/job.ts';
import type { JsonValue } from './core/json.ts';
import type { AnyTask, InputOf } from './core/task.ts';
import { graphsByIds } from './db/reads/graph-rows.ts';
import { jobsByIds } from './db/reads/job-row.ts';
import type { Database, Executor } from './db/types.ts';
import type { GraphNodeRequest, GraphsEngine } from './engine/graph-types.ts';
import { type SubmitJobOptions, submitRequest } from './engine/submit-options.ts';
import type { Caller } from './engine/types.ts';
import { type JobSnapshot, snapshotOf } from './job-snapshot.ts';

/** `input`, which may be left out where the task can do without. */
type InputField<I> = undefined extends I ? { input?: I } : JsonValue extends I ? { input?: I } : { input: I };

/** What goes before a node: another node, by its name, or a job outside the graph. `policy` as in SubmitJobOptions. */
export type GraphUpstream<Name extends string> =
  | Name
  | { node: Name; policy?: DependencyPolicy }
  | { jobId: string; policy?: DependencyPolicy };

/** The nodes of a graph by their names, each with its task, its input, and what may be said at submit. */
export type GraphNodes<T extends Record<string, AnyTask>> = {
  [K in keyof T]: { task: T[K] } & InputField<InputOf<T[K]>> & {
      dependsOn?: readonly GraphUpstream<NoInfer<keyof T & string>>[];
    } & Omit<SubmitJobOptions, 'tx' | 'dependsOn'>;
};

/** A job of a deduplicated graph of which retention left nothing but its id. */
export interface RemovedJob {
  /** `job_…` */
  id: string;
  state: null;
}

/** The answer to a submit of a graph. */
export interface SubmitGraphResult<Name extends PropertyKey> {
  graph: { /** `gra_…` */ id: string; title: string };
  /** The key's graph existed before. */
  deduplicated: boolean;
  /** By the names of the nodes, as they are behind the submit. */
  jobs: { [K in Name]: JobSnapshot | RemovedJob };
  /** After `{ tx }`: call it after the commit, to start the jobs at once; else the next poll does. */
  wake: () => void;
}

/** The part of a back end about graphs. */
export interface WaymarkGraphs {
  /**
   * Hands in jobs together with what goes before what: all or nothing, at most 1000. With a key a second call with the
   * same nodes gives the same graph. With `tx` the graph exists if and only if that commits.
   * @throws as `submit`, with `path` `nodes.NAME`; InvalidInput also for a circle; GraphIdempotencyConflict; NotFound and
   *   InvalidId of a job outside
   */
  submitGraph<const T extends Record<string, AnyTask>>(
    graph: { title?: string; idempotencyKey?: string; nodes: GraphNodes<T> },
    options?: { tx?: unknown },
  ): Promise<SubmitGraphResult<keyof T>>;
}

/** What every node has, whatever its task. */
interface GivenNode extends Omit<SubmitJobOptions, 'tx' | 'dependsOn'> {
  task: AnyTask;
  input?: unknown;
  dependsOn?: readonly GraphUpstream<string>[];
}

/** @param register makes tasks known */
export function createWaymarkGraphs(
  graphs: GraphsEngine,
  database: Database,
  caller: Caller,
  { register }: { register(tasks: readonly AnyTask[], executor: Executor): Promise<void> },
): WaymarkGraphs {
  return {
    async submitGraph({ nodes, ...given }, { tx } = {}) {
      const named = Object.entries(nodes as Record<string, GivenNode>);
      const requests = named.map(([name, node]) => requestOf(name, node));
      const adopted = tx === undefined ? undefined : database.adopt(tx);
      const executor = adopted ?? database.submit;
      await register(
        named.map(([, { task }]) => task),
        executor,
      );
      const { graphId, deduplicated, jobs, wake } = await graphs.submitGraph(
        caller,
        { ...given, nodes: requests },
        adopted ? { tx: adopted } : {},
      );
      const [graph] = await graphsByIds(executor, caller.tenant, [graphId]);
      const rows = await jobsByIds(executor, caller.tenant, [...jobs.values()]);
      if (!graph) throw new Error(`graph ${graphId} was removed in the moment it was submitted`);
      const snapshots = new Map(rows.map((row) => [row.id, snapshotOf(row)]));
      const byName = [...jobs].map(([name, id]) => [
        name,
        snapshots.get(id) ?? { id: publicId('Job', id), state: null },
      ]);
      return {
        graph: { id: publicId('Graph', graph.id), title: graph.title },
        deduplicated,
        jobs: Object.fromEntries(byName),
        wake,
      };
    },
  };
}

/** @throws TypeError that names the option and its rule, InvalidId */
function requestOf(name: string, { task, input, dependsOn = [], ...options }: GivenNode): GraphNodeRequest {
  const outside: { jobId: string; policy?: DependencyPolicy }[] = [];
  const inside: { node: string; policy?: DependencyPolicy }[] = [];
  for (const upstream of dependsOn) {
    if (typeof upstream === 'string') inside.push({ node: upstream });
    else if ('jobId' in upstream) outside.push(upstream);
    else inside.push(upstream);
  }
  return {
    name,
    job: submitRequest(task, input, { ...options, ...(outside.length > 0 ? { dependsOn: outside } : {}) }),
    dependsOn: inside,
    definition: task.definition,
    inputSchema: task.inputSchema,
  };
}
