import { approvalDigest } from '../core/approval.ts';
import { LeaseLost, Unavailable } from '../core/errors.ts';
import { newUuid } from '../core/ids.ts';
import { definitionDigest } from '../core/task.ts';
import { toChanges } from '../db/changes.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { checkpointsOf } from '../db/reads/checkpoint-rows.ts';
import { dependencyOutcomes } from '../db/reads/outcomes.ts';
import { cancelDelivered } from '../db/transitions/cancel.ts';
import { claim, startedChange } from '../db/transitions/claim.ts';
import { openApproval } from '../db/transitions/open-approval.ts';
import type { Database } from '../db/types.ts';
import { appendLogs, flushProgress, saveCheckpoints } from '../db/writes/checkpoints.ts';
import { registerQueues, registerTasks } from '../db/writes/registry.ts';
import { markStopped, registerWorker } from '../db/writes/workers.ts';
import type { ArtifactVerbs } from './artifact-types.ts';
import { createBatcher } from './batcher.ts';
import { sendBeat } from './beat.ts';
import { createChildOutcomes } from './child-outcomes.ts';
import { type Announcer, announce } from './commit.ts';
import type { FollowUps } from './follow-ups.ts';
import { createSettle } from './settle.ts';
import { createSuspend } from './suspend.ts';
import { taskRow } from './task-row.ts';
import type { CheckpointWrite, EngineOptions, ExecutionEngine } from './types.ts';
import { checkpointInput, createUserTransactions, savedBefore } from './user-transactions.ts';

/** The verbs of workers, but for the claim of queues with limits. */
export function createExecution(
  database: Database,
  channel: Announcer,
  options: Pick<EngineOptions, 'leaseMs' | 'priorityStepMs'>,
  followUps: Pick<FollowUps, 'after'>,
): Omit<ExecutionEngine, 'claimLimited' | 'submitFromHandler' | 'submitWithin' | keyof ArtifactVerbs> {
  const db = database.work;
  const settle = createSettle(db, channel, followUps);
  const suspend = createSuspend(database, channel, options, followUps);
  const save = createBatcher<CheckpointWrite, void>((writes) => saveTogether(writes), {
    maxSize: 100,
    parallel: 2,
    isShared: (e) => e instanceof Unavailable,
  });

  /** One statement for checkpoints of several jobs; a job's second checkpoint, and each STEP, goes in one of its own. */
  async function saveTogether(writes: CheckpointWrite[]): Promise<(undefined | Error)[]> {
    const fates = new Map<CheckpointWrite, undefined | Error>();
    let rest = writes;
    while (rest.length > 0) {
      const jobs = new Set<string>();
      const round = rest.filter((w) => !jobs.has(w.jobId) && jobs.add(w.jobId));
      rest = rest.filter((w) => !round.includes(w));
      for (const existing of ['replace', 'refuse'] as const) {
        const part = round.filter((w) => (w.kind === 'STEP') === (existing === 'refuse'));
        if (part.length === 0) continue;
        const rows = await saveCheckpoints(db, part.map(checkpointInput), existing);
        announce(channel, rows);
        const saved = new Set(rows.map((r) => r.id));
        for (const w of part) fates.set(w, saved.has(w.jobId) ? undefined : new LeaseLost(w.jobId, w.attempt));
      }
    }
    return writes.map((w) => fates.get(w));
  }

  return {
    async registerWorker(w) {
      const definitions = [...w.tasks];
      await db.transaction(async (tx) => {
        const names = new Set([...definitions.map((d) => d.queue), ...(w.queues ?? [])]);
        await registerQueues(
          tx,
          [...names].map((name) => ({ id: newUuid(), name })),
        );
        await registerTasks(tx, definitions.map(taskRow));
        await registerWorker(tx, {
          ...w,
          queues: w.queues ?? [],
          tasks: definitions.map((d) => d.name),
          taskDigests: Object.fromEntries(definitions.map((d) => [d.name, definitionDigest(d)])),
        });
      });
    },

    registerTasks: (definitions, tx = database.submit) => registerTasks(tx, definitions.map(taskRow)),

    beat: (workerId, status) => sendBeat(database.beat, workerId, status),

    async claim(workerId, request) {
      const rows = await claim(db, workerId, request);
      channel.publishRows(rows, (heard) => toChanges(heard.map((row) => startedChange(row, workerId))));
      return rows;
    },

    settle: (end) => (end.outcome === 'SUSPENDED' ? suspend(end) : settle(end)),

    async openApproval({ expiresInMs, ...opening }) {
      const input = { ...opening, id: newUuid(), expiresInMs, digest: approvalDigest(opening) };
      const { changes, approval } = await db.transaction((tx) => openApproval(tx, input));
      announce(channel, changes);
      if (approval === null) throw new LeaseLost(opening.jobId, opening.attempt);
      return approval;
    },

    ...createChildOutcomes(database),
    dependencies: (jobId) => dependencyOutcomes(db, jobId),

    async flushProgress(updates) {
      if (updates.length === 0) return [];
      const rows = await flushProgress(
        db,
        updates.map((u) => ({ jobId: u.jobId, attempt: u.attempt, progress: JSON.stringify(u.progress) })),
      );
      channel.publishRows(rows, (heard) =>
        heard.map(({ id, ...row }) => ({ jobId: id, from: 'RUNNING', state: 'RUNNING', events: [], ...row })),
      );
      return rows.map((row) => row.id);
    },

    async checkpoints(jobId, epoch) {
      return new Map((await checkpointsOf(db, jobId, epoch)).map((row) => [row.key, row]));
    },

    saveCheckpoint: (write) =>
      save.add(write).then(
        () => ({ data: JSON.parse(write.data), existed: false }),
        (error) => {
          if (write.kind === 'STEP' && isUniqueViolation(error)) return savedBefore(db, write);
          throw error;
        },
      ),

    ...createUserTransactions(database, channel, options),

    async cancelDelivered(jobId, attempt) {
      announce(channel, await cancelDelivered(db, jobId, attempt));
    },

    async appendLogs(lines) {
      if (lines.length > 0)
        await appendLogs(
          db,
          lines.map((line) => ({ ...line, id: newUuid() })),
        );
    },

    async workerStopped(workerId) {
      await markStopped(database.beat, workerId);
    },
  };
}
