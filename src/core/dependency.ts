import type { DependencyPolicy } from './job.ts';
import { isTerminal, type JobState } from './state.ts';

/** Most upstream jobs of one job, and most nodes of one graph. */
export const MAX_UPSTREAMS = 1_000;
export const MAX_GRAPH_NODES = 1_000;
/** Most edges of one graph. */
export const MAX_GRAPH_EDGES = 10_000;
/** Most children of one `ctx.children` call. */
export const MAX_CHILDREN = 1_000;

/** Whether an upstream job in this state no longer holds a dependant up. */
export function satisfies(state: JobState, policy: DependencyPolicy): boolean {
  return state === 'COMPLETED' || (policy === 'CONTINUE' && isTerminal(state));
}

/**
 * A cycle among the nodes of a graph, as the names on it (the first one again at the end), or null when there is none.
 * Each node lists the names that it waits for. Linear in nodes and edges, whatever their shape.
 */
export function findCycle(nodes: ReadonlyMap<string, readonly string[]>): string[] | null {
  const done = new Set<string>();
  for (const start of nodes.keys()) {
    if (done.has(start)) continue;
    const path: string[] = [start];
    const onPath = new Set(path);
    const next: number[] = [0];
    while (path.length > 0) {
      const name = path.at(-1) as string;
      const upstream = nodes.get(name)?.[next.at(-1) as number];
      next[next.length - 1] = (next.at(-1) as number) + 1;
      if (upstream === undefined) {
        done.add(name);
        onPath.delete(name);
        path.pop();
        next.pop();
      } else if (onPath.has(upstream)) {
        return [...path.slice(path.indexOf(upstream)), upstream];
      } else if (!done.has(upstream)) {
        path.push(upstream);
        onPath.add(upstream);
        next.push(0);
      }
    }
  }
  return null;
}

/** The ids with each behind those that it waits for; else in the order in which they came. Edges must not go in circles. */
export function upstreamsFirst(
  ids: readonly string[],
  edges: readonly { id: string; upstream: string }[],
): readonly string[] {
  if (edges.length === 0) return ids;
  const dependants = new Map<string, string[]>();
  const waits = new Map<string, number>();
  for (const { id, upstream } of edges) {
    const known = dependants.get(upstream);
    if (known) known.push(id);
    else dependants.set(upstream, [id]);
    waits.set(id, (waits.get(id) ?? 0) + 1);
  }
  const ordered = ids.filter((id) => !waits.has(id));
  for (const id of ordered) {
    for (const dependant of dependants.get(id) ?? []) {
      const left = (waits.get(dependant) ?? 0) - 1;
      waits.set(dependant, left);
      if (left === 0) ordered.push(dependant);
    }
  }
  return ordered;
}
