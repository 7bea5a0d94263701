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
import { byKey, fromMap, groups, type LoaderScope, pagesOf } from './batching.ts';

/** The batched reads of graphs and of jobs that wait for each other; part of `LOADERS`. */
export const GRAPH_LOADERS = {
  graph: ({ db, tenant }: LoaderScope) =>
    byKey(
      (ids: readonly string[]) => graphsByIds(db, tenant, ids),
      (row: GraphRow) => row.id,
      null,
    ),
  /** Of graphs that were read with their tenant. */
  graphNodes: ({ db }: LoaderScope) =>
    groups<GraphNodeRow>(
      (ids) => graphNodes(db, ids),
      (row) => row.graphId,
    ),
  graphSummary: ({ db, tenant }: LoaderScope) => {
    const tallies = groups<GraphTally & { graphId: string }>(
      (ids) => graphTallies(db, tenant, ids),
      (row) => row.graphId,
    );
    return async (id: string) => summarize(await tallies.load(id));
  },
  dependencies: ({ db, tenant }: LoaderScope) =>
    pagesOf(
      (ids, { first }: { first: number }) => dependenciesOfJobs(db, tenant, ids, first),
      (row) => row.jobId,
    ),
  dependencyCount: ({ db, tenant }: LoaderScope) => fromMap((ids) => countDependencies(db, tenant, ids), 0),
  dependents: ({ db, tenant }: LoaderScope) =>
    pagesOf(
      (ids, { first }: { first: number }) => dependentsOfJobs(db, tenant, ids, first),
      (row) => row.jobId,
    ),
  dependentCount: ({ db, tenant }: LoaderScope) => fromMap((ids) => countDependents(db, tenant, ids), 0),
  children: ({ db, tenant }: LoaderScope) =>
    pagesOf(
      (ids, window: BelongingsWindow<string>) => childrenOfJobs(db, tenant, ids, window),
      (row) => row.parentId,
    ),
  childCount: ({ db, tenant }: LoaderScope) => fromMap((ids) => countChildren(db, tenant, ids), 0),
  openCounts: ({ db, tenant }: LoaderScope) =>
    groups(
      (ids) => openCounts(db, tenant, ids),
      (row) => row.id,
    ),
  openUpstreams: ({ db, tenant }: LoaderScope) =>
    pagesOf(
      (ids, { first }: { first: number }) => openUpstreams(db, tenant, ids, first),
      (row) => row.id,
    ),
  /** Stored id of the job that has the concurrency key. */
  headOfKey: ({ db, tenant }: LoaderScope) =>
    fromMap(async (keys) => new Map((await headsOfKeys(db, tenant, keys)).map(({ key, jobId }) => [key, jobId])), null),
};
