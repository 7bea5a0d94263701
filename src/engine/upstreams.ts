import { satisfies } from '../core/dependency.ts';
import { NotFound } from '../core/errors.ts';
import { publicId } from '../core/ids.ts';
import { isTerminal, type JobState } from '../core/state.ts';
import type { JobLinks, NewJob } from '../db/transitions/submit.ts';
import type { Executor } from '../db/types.ts';
import { addFollowups, lockUpstreams } from '../db/writes/upstreams.ts';

/** A job about to be written, with its place in the call for errors (`inputs[3]`, `nodes.b`; empty for a single one). */
export interface PlacedJob {
  job: NewJob;
  path: string;
}

export interface Resolved {
  jobs: NewJob[];
  /** Upstream jobs that have ended otherwise than their dependants need: to be followed up after the commit. */
  ended: string[];
  /** Of all that were locked. */
  states: ReadonlyMap<string, JobState>;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Locks the upstream jobs of those about to be written in this transaction, and says which of them hold them up. Ids in
 * `fresh` are written by the same statement and not looked for; those in `also` are locked in the same round.
 * @throws NotFound that names an upstream job which the tenant does not have
 */
export async function resolveUpstreams(
  tx: Executor,
  tenant: string,
  placed: readonly PlacedJob[],
  { fresh = NONE, also = [] }: { fresh?: ReadonlySet<string>; also?: readonly string[] } = {},
): Promise<Resolved> {
  const ids = new Set<string>(also);
  for (const { job } of placed) {
    for (const { upstreamId } of job.links?.dependsOn ?? []) if (!fresh.has(upstreamId)) ids.add(upstreamId);
  }
  const jobs = placed.map(({ job }) => job);
  if (ids.size === 0) return { jobs, ended: [], states: new Map() };
  const states = await lockUpstreams(tx, tenant, [...ids]);
  const ended = new Set<string>();
  const resolved = placed.map(({ job, path }) => {
    if (job.links === null || job.links.dependsOn.length === 0) return job;
    const dependsOn = job.links.dependsOn.map((upstream) => {
      if (fresh.has(upstream.upstreamId)) return upstream;
      const state = states.get(upstream.upstreamId);
      if (state === undefined) throw new NotFound('job', publicId('Job', upstream.upstreamId), path || undefined);
      const satisfied = satisfies(state, upstream.policy);
      if (!satisfied && isTerminal(state)) ended.add(upstream.upstreamId);
      return { ...upstream, satisfied };
    });
    return { ...job, links: { ...job.links, dependsOn } satisfies JobLinks };
  });
  if (ended.size > 0) await addFollowups(tx, [...ended]);
  return { jobs: resolved, ended: [...ended], states };
}
