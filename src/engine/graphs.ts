import { GraphIdempotencyConflict } from '../core/errors.ts';
import type { GraphEdge } from '../core/graph.ts';
import { newUuid } from '../core/ids.ts';
import { jsonDigest } from '../core/json.ts';
import { graphNodes } from '../db/reads/graph-rows.ts';
import { type JobLinks, type NewJob, NO_LINKS, submit as submitRows } from '../db/transitions/submit.ts';
import type { Database, Executor } from '../db/types.ts';
import { type NewGraph, takeGraphKey, writeGraph } from '../db/writes/graphs.ts';
import type { LiveChannel } from '../events/channel.ts';
import { announce } from './commit.ts';
import { existingJobs, KeyTaken, untilKeysAreKnown } from './existing-keys.ts';
import type { FollowUps } from './follow-ups.ts';
import { checkGraph } from './graph-request.ts';
import type { GraphNodeRequest, GraphRequest, GraphsEngine, SubmittedGraph } from './graph-types.ts';
import type { Prepare } from './prepare.ts';
import { withRetry } from './submit.ts';
import type { Caller, EngineOptions } from './types.ts';
import { resolveUpstreams } from './upstreams.ts';

interface PreparedNode {
  request: GraphNodeRequest;
  path: string;
  job: NewJob;
}

export function createGraphs(
  database: Database,
  channel: LiveChannel,
  options: EngineOptions,
  { prepare, followUps }: { prepare: Prepare; followUps: FollowUps },
): GraphsEngine {
  const settings = { priorityStepMs: options.priorityStepMs, retainKeysMs: options.retainMs.keys };

  async function prepareNodes(caller: Caller, { nodes }: GraphRequest, graphId: string, tx: Executor | undefined) {
    const prepared: PreparedNode[] = [];
    for (const request of nodes) {
      const path = `nodes.${request.name}`;
      const links = { graphId, nodeName: request.name };
      const job = await prepare(caller, request.job, {
        path,
        links,
        inputSchema: request.inputSchema,
        ...(request.definition ? { definition: request.definition } : {}),
        ...(tx ? { tx } : {}),
      });
      prepared.push({ request, path, job });
    }
    return prepared;
  }

  async function write(
    tx: Executor,
    graph: NewGraph,
    nodes: readonly PreparedNode[],
    repeated: boolean,
  ): Promise<SubmittedGraph> {
    if (graph.idempotencyKey !== null) {
      const key = await takeGraphKey(tx, { ...graph, idempotencyKey: graph.idempotencyKey }, settings.retainKeysMs);
      if (key.graphId !== graph.id) return existing(tx, graph, key);
    }
    const taken = await existingJobs(tx, graph.tenant, nodes);
    const jobOf = new Map(nodes.map(({ request, job }) => [request.name, taken.get(job) ?? job.id]));
    const fresh = nodes.filter(({ job }) => !taken.has(job));
    const upstream = new Set(graph.edges.map((e) => e.from));
    const placed = fresh.map(({ request, job, path }) => ({
      path,
      job: { ...job, links: linksOf(job, request.name, graph.edges, jobOf, upstream.has(request.name)) },
    }));
    const { jobs, ended } = await resolveUpstreams(tx, graph.tenant, placed, {
      fresh: new Set(fresh.map(({ job }) => job.id)),
      // They have a relative from now on, with which retention must reckon.
      also: [...taken.values()],
    });
    const rows = jobs.length === 0 ? [] : await submitRows(tx, jobs, { ...settings, repeated });
    if (rows.some((row) => row.jobId !== row.id)) throw new KeyTaken();
    await writeGraph(
      tx,
      graph,
      nodes.map(({ request, job }) => ({
        name: request.name,
        jobId: jobOf.get(request.name) as string,
        deduplicated: taken.has(job),
      })),
    );
    return {
      graphId: graph.id,
      deduplicated: false,
      jobs: jobOf,
      wake: () => {
        announce(
          channel,
          rows.flatMap((row) => row.inserted ?? []),
        );
        if (ended.length > 0) void followUps.soon(ended);
      },
    };
  }

  return {
    async submitGraph(caller, request, { tx } = {}) {
      const edges = checkGraph(request);
      const id = newUuid();
      const nodes = await prepareNodes(caller, request, id, tx);
      const graph: NewGraph = {
        id,
        tenant: caller.tenant,
        title: request.title ?? defaultTitle(request),
        idempotencyKey: request.idempotencyKey ?? null,
        digest: digestOf(nodes, edges),
        submittedBy: caller.actor,
        edges,
      };
      if (tx) return write(tx, graph, nodes, false);
      const done = await untilKeysAreKnown(() =>
        withRetry((repeated) => database.submit.transaction((own) => write(own, graph, nodes, repeated))),
      );
      done.wake();
      return done;
    },
  };
}

/** The graph that the key stands for. @throws GraphIdempotencyConflict when it was made of something else */
async function existing(
  tx: Executor,
  graph: NewGraph,
  key: { graphId: string; digest: string },
): Promise<SubmittedGraph> {
  if (key.digest !== graph.digest) {
    throw new GraphIdempotencyConflict(graph.idempotencyKey ?? '', key.graphId, graph.digest, key.digest);
  }
  const nodes = await graphNodes(tx, [key.graphId]);
  return {
    graphId: key.graphId,
    deduplicated: true,
    jobs: new Map(nodes.map((n) => [n.name, n.jobId])),
    wake: () => {},
  };
}

function linksOf(
  job: NewJob,
  name: string,
  edges: readonly GraphEdge[],
  jobOf: ReadonlyMap<string, string>,
  followed: boolean,
): JobLinks {
  const outside = job.links?.dependsOn ?? [];
  const inside = edges
    .filter((e) => e.to === name)
    .map((e) => ({ upstreamId: jobOf.get(e.from) as string, policy: e.policy, satisfied: false }))
    // A node whose key stands for a job outside, which the call names too, is one upstream job.
    .filter(
      (e, i, all) =>
        !outside.some((o) => o.upstreamId === e.upstreamId) &&
        all.findIndex((o) => o.upstreamId === e.upstreamId) === i,
    );
  return { ...NO_LINKS, ...job.links, dependsOn: [...inside, ...outside], followed };
}

function digestOf(nodes: readonly PreparedNode[], edges: readonly GraphEdge[]): string {
  return jsonDigest({
    nodes: nodes.map(({ request, job }) => [request.name, job.task, job.inputDigest]),
    edges: edges.map((e) => [e.from, e.to, e.policy]),
  });
}

function defaultTitle({ nodes }: GraphRequest): string {
  const names = nodes.slice(0, 3).map((n) => n.name);
  return (nodes.length > 3 ? [...names, '…'] : names).join(', ').slice(0, 200);
}
