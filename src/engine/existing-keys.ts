import { IdempotencyConflict, Unavailable } from '../core/errors.ts';
import type { NewJob } from '../db/transitions/submit.ts';
import type { Executor } from '../db/types.ts';
import { keysInUse } from '../db/writes/graphs.ts';
import type { PlacedJob } from './upstreams.ts';

/** How often jobs are tried whose key is taken by another caller in the very moment. */
const MAX_TRIES = 5;

/**
 * Which of these jobs exist already, by their keys: what depends on them must know before it is written. Of equal keys the
 * first stands for all.
 * @throws IdempotencyConflict that names the place
 */
export async function existingJobs(
  tx: Executor,
  tenant: string,
  placed: readonly PlacedJob[],
): Promise<Map<NewJob, string>> {
  const keyed = placed.filter(({ job }) => job.idempotencyKey !== null);
  const taken = new Map<NewJob, string>();
  if (keyed.length === 0) return taken;
  const keys = keyed.map(({ job }) => ({ task: job.task, key: job.idempotencyKey as string }));
  const inUse = new Map((await keysInUse(tx, tenant, keys)).map((k) => [JSON.stringify([k.task, k.key]), k]));
  for (const { job, path } of keyed) {
    const key = JSON.stringify([job.task, job.idempotencyKey]);
    const found = inUse.get(key);
    if (found === undefined) {
      const { id: jobId, inputDigest: digest, keyScope: scope } = job;
      inUse.set(key, { task: job.task, key: job.idempotencyKey as string, jobId, digest, scope });
      continue;
    }
    // Its own id: written by an earlier call whose answer was lost.
    if (found.jobId === job.id) continue;
    if (found.scope === 'RETENTION' && found.digest !== job.inputDigest) {
      throw new IdempotencyConflict(job.idempotencyKey ?? '', found.jobId, job.inputDigest, found.digest, path);
    }
    taken.set(job, found.jobId);
  }
  return taken;
}

/** A key was free when it was looked at, and taken when it was to be used: the transaction is undone and tried again. */
export class KeyTaken extends Unavailable {
  constructor() {
    super('an idempotency key was taken in this moment; repeat the call');
  }
}

/** Runs a transaction again whose keys were taken in its very moment. */
export async function untilKeysAreKnown<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof KeyTaken) || tries >= MAX_TRIES) throw error;
    }
  }
}
