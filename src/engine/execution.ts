import { LeaseLost, Unavailable } from '../core/errors.ts';
import { newUuid } from '../core/ids.ts';
import { definitionDigest, type TaskDefinition } from '../core/task.ts';
import { toChanges } from '../db/changes.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { checkpointsOf } from '../db/reads/checkpoint-rows.ts';
import { cancelDelivered } from '../db/transitions/cancel.ts';
import { claim, startedChange } from '../db/transitions/claim.ts';
import type { Database } from '../db/types.ts';
import { appendLogs, flushProgress, saveCheckpoints } from '../db/writes/checkpoints.ts';
import { registerQueues, registerTasks } from '../db/writes/registry.ts';
import { markStopped, registerWorker } from '../db/writes/workers.ts';
import { createBatcher } from './batcher.ts';
import { sendBeat } from './beat.ts';
import { type Announcer, announce } from './commit.ts';
import type { FollowUps } from './follow-ups.ts';
import { createSettle } from './settle.ts';
import type { ArtifactVerbs, CheckpointWrite, EngineOptions, ExecutionEngine } from './types.ts';
import { checkpointInput, createUserTransactions, savedBefore } from './user-transactions.ts';

/** The verbs of workers, but for the claim of queues with limits. */
export function createExecution(
  database: Database,
  channel: Announcer,
  { leaseMs }: Pick<EngineOptions, 'leaseMs'>,
  followUps: Pick<FollowUps, 'after'>,
): Omit<ExecutionEngine, 'claimLimited' | keyof ArtifactVerbs> {
  const db = database.work;
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
        await registerTasks(tx, definitions.map(toRow));
        await registerWorker(tx, {
          ...w,
          queues: w.queues ?? [],
          tasks: definitions.map((d) => d.name),
          taskDigests: Object.fromEntries(definitions.map((d) => [d.name, definitionDigest(d)])),
        });
      });
    },

    registerTasks: (definitions, tx = database.submit) => registerTasks(tx, definitions.map(toRow)),

    beat: (workerId, status) => sendBeat(database.beat, workerId, status),

    async claim(workerId, request) {
      const rows = await claim(db, workerId, request);
      channel.publishRows(rows, (heard) => toChanges(heard.map((row) => startedChange(row, workerId))));
      return rows;
    },

    settle: createSettle(db, channel, followUps),

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

    async saveCheckpoint(write) {
      try {
        await save.add(write);
      } catch (error) {
        if (write.kind === 'STEP' && isUniqueViolation(error)) return savedBefore(db, write);
        throw error;
      }
      return { data: JSON.parse(write.data), existed: false };
    },

    ...createUserTransactions(database, channel, { leaseMs }),

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

function toRow(definition: TaskDefinition) {
  const text = JSON.stringify(definition);
  return { id: newUuid(), name: definition.name, digest: definitionDigest(definition), definition: text };
}
