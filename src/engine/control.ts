import { InvalidInput, InvalidTransition, NotFound } from '../core/errors.ts';
import { publicId } from '../core/ids.ts';
import { type JobRow, MAX_TEXT } from '../core/job.ts';
import { textProblem } from '../core/json.ts';
import { allows, isTerminal } from '../core/state.ts';
import { jobById } from '../db/reads/job-row.ts';
import { keyHolder } from '../db/reads/key-holder.ts';
import { cancel } from '../db/transitions/cancel.ts';
import { retry } from '../db/transitions/retry.ts';
import { runNow } from '../db/transitions/stage.ts';
import type { Database } from '../db/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import { announce, type ChangedRow, tell } from './commit.ts';
import type { FollowUps } from './follow-ups.ts';
import { cancelLeftBehind } from './left-behind.ts';
import type { Caller, EngineOptions, JobsEngine } from './types.ts';

/** Undoes the transaction. */
class NotRetried extends Error {}

/** The verbs by which people steer a job. Each is one guarded statement; only when it moved nothing is the job looked at. */
export function createControl(
  database: Database,
  channel: LiveChannel,
  options: EngineOptions,
  followUps: FollowUps,
): Pick<JobsEngine, 'cancel' | 'retry' | 'runNow'> {
  const db = database.submit;

  async function get(caller: Caller, id: string): Promise<JobRow> {
    const job = await jobById(db, caller.tenant, id);
    if (!job) throw new NotFound('job', publicId('Job', id));
    return job;
  }

  /** The job with its children, or nothing: keys that some of them took back are free again when the job cannot go. */
  async function retryWhole(id: string, by: Parameters<typeof retry>[3]): Promise<ChangedRow[]> {
    try {
      return await db.transaction(async (tx) => {
        const rows = await retry(tx, [id], null, by);
        if (!rows.some((row) => row.id === id)) throw new NotRetried();
        const drops = by.fromStart || by.fromCheckpoint !== null;
        return drops ? [...rows, ...(await cancelLeftBehind(tx, [id], by.actor))] : rows;
      });
    } catch (error) {
      if (error instanceof NotRetried) return [];
      throw error;
    }
  }

  return {
    async cancel(caller, id, { reason = null, expectedRun = null, cascade = true } = {}) {
      checkReason(reason);
      const { tenant, actor } = caller;
      const rows = await cancel(db, [id], { tenant, actor, reason, expectedRun, cascade: cascade ?? true });
      // The word to its worker saves waiting for the next beat; the beat is what makes it sure.
      tell(channel, rows);
      await followUps.after(rows);
      const job = await get(caller, id);
      if (rows.length === 0) {
        if (expectedRun !== null && job.run !== expectedRun) throw movedOn(job, expectedRun);
        const alike = job.state === 'CANCELED' || (!isTerminal(job.state) && job.cancelRequestedAt !== null);
        if (!alike) throw new InvalidTransition(id, `a job in ${job.state} cannot be canceled`);
      }
      return job;
    },

    async retry(caller, id, { expectedRun = null, fromStart, fromCheckpoint = null, reason = null } = {}) {
      checkReason(reason);
      if (fromStart && fromCheckpoint !== null) {
        throw new InvalidInput([{ path: 'fromCheckpoint', message: 'must not be given together with fromStart' }]);
      }
      if (fromCheckpoint !== null && textProblem(fromCheckpoint)) {
        throw new InvalidInput([{ path: 'fromCheckpoint', message: textProblem(fromCheckpoint) ?? '' }]);
      }
      const rows = await retryWhole(id, {
        tenant: caller.tenant,
        actor: caller.actor,
        expectedRun,
        fromStart: fromStart ?? false,
        fromCheckpoint,
        reason: reason ?? 'retry',
        priorityStepMs: options.priorityStepMs,
      });
      const followed = tell(channel, rows);
      if (followed.length > 0) await followUps.soon(followed);
      const job = await get(caller, id);
      if (rows.length === 0) {
        if (expectedRun !== null && job.run !== expectedRun) throw movedOn(job, expectedRun);
        if (job.prunedAt !== null) throw new InvalidTransition(id, 'the job was pruned: its input is gone');
        if (!allows('retry', job.state)) throw new InvalidTransition(id, `a job in ${job.state} cannot be retried`);
        const holder = await keyHolder(db, id);
        if (holder !== null)
          throw new InvalidTransition(id, `its idempotencyKey is that of ${publicId('Job', holder)} now`);
        if (fromCheckpoint === null) throw new InvalidTransition(id, 'the job changed at this moment; look again');
        throw new InvalidInput([{ path: 'fromCheckpoint', message: 'is not a checkpoint of this job' }]);
      }
      return job;
    },

    async runNow(caller, id) {
      const { tenant, actor } = caller;
      const rows = await runNow(db, id, { tenant, actor, priorityStepMs: options.priorityStepMs });
      announce(channel, rows);
      const job = await get(caller, id);
      if (rows.length === 0) throw new InvalidTransition(id, `a job in ${job.state} does not wait for its time`);
      return job;
    },
  };
}

function movedOn(job: JobRow, expectedRun: number): InvalidTransition {
  return new InvalidTransition(job.id, `the job is in run ${job.run}, not in run ${expectedRun}`);
}

/** @throws InvalidInput for one that is too long, or that the store cannot hold */
export function checkReason(reason: string | null): void {
  if (reason === null) return;
  const problem =
    textProblem(reason) ??
    (reason.length > MAX_TEXT.reason ? `must not be longer than ${MAX_TEXT.reason} characters` : null);
  if (problem) throw new InvalidInput([{ path: 'reason', message: problem }]);
}
