import { IdempotencyConflict, InvalidInput, LeaseLost } from '../core/errors.ts';
import { publicId } from '../core/ids.ts';
import { isTerminal } from '../core/state.ts';
import { definitionDigest } from '../core/task.ts';
import type { ChangeRow } from '../db/changes.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { submit as submitRows } from '../db/transitions/submit.ts';
import type { Database, Executor } from '../db/types.ts';
import { saveCheckpoints } from '../db/writes/checkpoints.ts';
import { addChildren, parentOf, waitersAmong } from '../db/writes/children.ts';
import { registerTasks } from '../db/writes/registry.ts';
import type { LiveChannel } from '../events/channel.ts';
import { announce } from './commit.ts';
import { existingJobs, KeyTaken, untilKeysAreKnown } from './existing-keys.ts';
import type { FollowUps } from './follow-ups.ts';
import type { Prepare } from './prepare.ts';
import { withRetry } from './submit.ts';
import { taskRow } from './task-row.ts';
import type { EngineOptions, ExecutionEngine, JobsFromHandler } from './types.ts';
import { type PlacedJob, resolveUpstreams } from './upstreams.ts';
import { checkpointInput, savedBefore } from './user-transactions.ts';

/** What is told after the commit. */
interface Written {
  ids: string[];
  rows: ChangeRow[];
  ended: string[];
}

/** Jobs that handlers submit: with the checkpoint of the call in one transaction, so exactly once however often it is repeated. */
export function createFromHandler(
  database: Database,
  channel: LiveChannel,
  options: EngineOptions,
  { prepare, followUps }: { prepare: Prepare; followUps: FollowUps },
): Pick<ExecutionEngine, 'submitFromHandler' | 'submitWithin'> {
  const db = database.work;
  const settings = { priorityStepMs: options.priorityStepMs, retainKeysMs: options.retainMs.keys };

  /** Digests of definitions that are known to every API. */
  const registered = new Set<string>();

  async function prepareJobs(from: JobsFromHandler): Promise<PlacedJob[]> {
    const parent = await parentOf(db, from.jobId);
    if (parent === null) throw new LeaseLost(from.jobId, from.attempt);
    const caller = { tenant: parent.tenant, actor: parent.submittedBy };
    const links = from.children === null ? undefined : { parentId: from.jobId, graphId: parent.graphId };
    const definitions = from.jobs.map((job) => job.definition).filter((d) => d !== null);
    const unknown = new Map(definitions.map((d) => [definitionDigest(d), d]));
    for (const digest of registered) unknown.delete(digest);
    if (unknown.size > 0) {
      await registerTasks(db, [...unknown.values()].map(taskRow));
      for (const digest of unknown.keys()) registered.add(digest);
    }
    const placed: PlacedJob[] = [];
    for (const [i, { request, definition }] of from.jobs.entries()) {
      const path = from.children === null ? '' : `jobs[${i}]`;
      const job = await prepare(caller, request, {
        path,
        ...(definition === null ? {} : { definition }),
        ...(links ? { links } : {}),
      });
      placed.push({ job, path });
    }
    return placed;
  }

  async function write(
    tx: Executor,
    from: JobsFromHandler,
    placed: readonly PlacedJob[],
    repeated: boolean,
  ): Promise<Written> {
    const tenant = placed[0]?.job.tenant ?? '';
    const taken = await existingJobs(tx, tenant, placed);
    const fresh = placed.filter(({ job }) => !taken.has(job));
    const ids = placed.map(({ job }) => taken.get(job) ?? job.id);
    // All jobs that this touches in one round: the parent, those that stand for a key, those that others depend on. The
    // parent counts as followed from now on: when it is canceled, so are its children.
    const also = from.children === null ? [] : [from.jobId, ...taken.values()];
    const resolved = await resolveUpstreams(tx, tenant, fresh, { also });
    if (from.children !== null) await refuseCircles(tx, from.jobId, placed, ids);
    const saved = await saveCheckpoints(
      tx,
      [
        checkpointInput({
          jobId: from.jobId,
          attempt: from.attempt,
          epoch: from.epoch,
          key: from.key,
          kind: from.children === null ? 'STEP' : 'CHILDREN',
          data: JSON.stringify(from.children === null ? { jobId: ids[0] } : { jobs: ids }),
        }),
      ],
      'refuse',
    );
    if (saved.length === 0) throw new LeaseLost(from.jobId, from.attempt);
    const rows = resolved.jobs.length === 0 ? [] : await submitRows(tx, resolved.jobs, { ...settings, repeated });
    if (rows.some((row) => row.jobId !== row.id)) throw new KeyTaken();
    if (from.children !== null) {
      const ended = (id: string) => {
        const state = resolved.states.get(id);
        return state !== undefined && isTerminal(state);
      };
      await addChildren(
        tx,
        from.jobId,
        from.children,
        [...new Set(ids)].map((id) => ({ id, ended: ended(id) })),
      );
    }
    return { ids, rows: [...saved, ...rows.flatMap((row) => row.inserted ?? [])], ended: resolved.ended };
  }

  return {
    async submitWithin(given, jobId, { request, definition }) {
      const tx = database.adopt(given);
      const from = await parentOf(tx, jobId);
      if (from === null) throw new LeaseLost(jobId, 0);
      if (definition !== null) await registerTasks(tx, [taskRow(definition)]);
      const caller = { tenant: from.tenant, actor: from.submittedBy };
      const job = await prepare(caller, request, { tx, ...(definition === null ? {} : { definition }) });
      const { jobs } = await resolveUpstreams(tx, from.tenant, [{ job, path: '' }]);
      const [row] = await submitRows(tx, jobs, settings);
      if (row && row.jobId !== job.id && row.keyScope === 'RETENTION' && row.keyDigest !== job.inputDigest) {
        throw new IdempotencyConflict(job.idempotencyKey ?? '', row.jobId, job.inputDigest, row.keyDigest ?? '');
      }
      return row?.jobId ?? job.id;
    },

    async submitFromHandler(from) {
      const placed = await prepareJobs(from);
      try {
        const { ids, rows, ended } = await untilKeysAreKnown(() =>
          withRetry((repeated) => db.transaction((tx) => write(tx, from, placed, repeated))),
        );
        announce(channel, rows);
        if (ended.length > 0) void followUps.soon(ended);
        return ids;
      } catch (error) {
        if (!isUniqueViolation(error, 'checkpoints_job_id_epoch_key_pk')) throw error;
        // An earlier call did it, whose answer was lost.
        const { data } = await savedBefore(db, from);
        const { jobs, jobId } = (data ?? {}) as { jobs?: string[]; jobId?: string };
        return jobs ?? (jobId === undefined ? [] : [jobId]);
      }
    },
  };
}

/**
 * A parent would wait for ever for children that stand for, or depend on, what waits for it, or that come behind it for
 * their concurrency key.
 */
async function refuseCircles(
  tx: Executor,
  parentId: string,
  placed: readonly PlacedJob[],
  ids: readonly string[],
): Promise<void> {
  const standsFor = (i: number) => (ids[i] === placed[i]?.job.id ? undefined : ids[i]);
  const upstreams = placed.map(({ job }) => (job.links?.dependsOn ?? []).map((upstream) => upstream.upstreamId));
  const waiters = await waitersAmong(tx, parentId, {
    ids: [...ids.filter((_, i) => standsFor(i) !== undefined), ...upstreams.flat()],
    keys: placed.flatMap(({ job }) => job.concurrencyKey ?? []),
  });
  for (const [i, { job }] of placed.entries()) {
    for (const { id, concurrencyKey } of waiters) {
      const what =
        id === standsFor(i)
          ? 'stands by its key for'
          : upstreams[i]?.includes(id)
            ? 'depends on'
            : concurrencyKey !== null && concurrencyKey === job.concurrencyKey
              ? 'has the concurrencyKey of'
              : null;
      if (what === null) continue;
      const which = id === parentId ? 'the job that waits for it' : `${publicId('Job', id)}, which waits for this job`;
      throw new InvalidInput([{ path: `jobs[${i}]`, message: `${what} ${which}` }]);
    }
  }
}
