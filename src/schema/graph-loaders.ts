import { type GraphNodeRow, type GraphRow, type GraphTally, summarize } from '../core/graph.ts';
import type { BelongingsWindow } from '../db/reads/belongings.ts';
import {
  childrenOfJobs,
  countChildren,
  countDependencies,
  countDependents,
  dependenciesOfJobs,
  dependentsOfJobs,
} from '../db/reads/dependencies.ts';
import { graphNodes, graphsByIds } from '../db/reads/graph-rows.ts';
import { graphTallies } from '../db/reads/graph-tallies.ts';
import { headsOfKeys, openCounts, openUpstreams } from '../db/reads/waited-for.ts';
import type { Executor } from '../db/types.ts';
import { byKey, fromMap, groups, pagesOf } from './batching.ts';

/** The batched reads of graphs and of jobs that wait for each other; part of `createLoaders`. */
export function createGraphLoaders(db: Executor, tenant: string) {
  const tallies = groups<GraphTally & { graphId: string }>(
    (ids) => graphTallies(db, tenant, ids),
    (row) => row.graphId,
  );
  return {
    graph: byKey(
      (ids: readonly string[]) => graphsByIds(db, tenant, ids),
      (row: GraphRow) => row.id,
      null,
    ),
    /** Of graphs that were read with their tenant. */
    graphNodes: groups<GraphNodeRow>(
      (ids) => graphNodes(db, ids),
      (row) => row.graphId,
    ),
    graphSummary: async (id: string) => summarize(await tallies.load(id)),
    dependencies: pagesOf(
      (ids, { first }: { first: number }) => dependenciesOfJobs(db, tenant, ids, first),
      (row) => row.jobId,
    ),
    dependencyCount: fromMap((ids) => countDependencies(db, tenant, ids), 0),
    dependents: pagesOf(
      (ids, { first }: { first: number }) => dependentsOfJobs(db, tenant, ids, first),
      (row) => row.jobId,
    ),
    dependentCount: fromMap((ids) => countDependents(db, tenant, ids), 0),
    children: pagesOf(
      (ids, window: BelongingsWindow<string>) => childrenOfJobs(db, tenant, ids, window),
      (row) => row.parentId,
    ),
    childCount: fromMap((ids) => countChildren(db, tenant, ids), 0),
    openCounts: groups(
      (ids) => openCounts(db, tenant, ids),
      (row) => row.id,
    ),
    openUpstreams: pagesOf(
      (ids, { first }: { first: number }) => openUpstreams(db, tenant, ids, first),
      (row) => row.id,
    ),
    /** Stored id of the job that has the concurrency key. */
    headOfKey: fromMap(
      async (keys) => new Map((await headsOfKeys(db, tenant, keys)).map(({ key, jobId }) => [key, jobId])),
      null,
    ),
  };
}
