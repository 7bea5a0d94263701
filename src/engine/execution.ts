import { LeaseLost, Unavailable } from '../core/errors.ts';
import { newUuid } from '../core/ids.ts';
import { definitionDigest, type TaskDefinition } from '../core/task.ts';
import { toChanges } from '../db/changes.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { checkpointByKey, checkpointsOf } from '../db/reads/checkpoint-rows.ts';
import { cancelDelivered } from '../db/transitions/cancel.ts';
import { claim, startedChange } from '../db/transitions/claim.ts';
import type { Database, Executor } from '../db/types.ts';
import { appendLogs, type CheckpointInput, flushProgress, saveCheckpoints } from '../db/writes/checkpoints.ts';
import { registerQueues, registerTasks } from '../db/writes/registry.ts';
import { markStopped, registerWorker } from '../db/writes/workers.ts';
import { createBatcher } from './batcher.ts';
import { sendBeat } from './beat.ts';
import { type Announcer, announce } from './commit.ts';
import { createSettle } from './settle.ts';
import type { CheckpointWrite, EngineOptions, ExecutionEngine } from './types.ts';

/** Longest a user's transaction may stay open: its batch would hold a connection and, embedded, everybody. */
const USER_TRANSACTION_MS = 30_000;

/** The verbs of workers. */
export function createExecution(
  database: Database,
  channel: Announcer,
  { leaseMs }: Pick<EngineOptions, 'leaseMs'>,
): ExecutionEngine {
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
        const rows = await saveCheckpoints(db, part.map(toInput), existing);
        announce(channel, rows);
        const saved = new Set(rows.map((r) => r.id));
        for (const w of part) fates.set(w, saved.has(w.jobId) ? undefined : new LeaseLost(w.jobId, w.attempt));
      }
    }
    return writes.map((w) => fates.get(w));
  }

  async function savedBefore(executor: Executor, write: { jobId: string; epoch: number; key: string }) {
    const row = await checkpointByKey(executor, write.jobId, write.epoch, write.key);
    return { data: row?.data ?? null, existed: true };
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

    settle: createSettle(db, channel),

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

    async transaction(jobId, attempt, fn) {
      let write: CheckpointWrite | undefined;
      try {
        const rows = await db.transaction(
          async (tx) => {
            write = await fn(tx);
            const limit = database.kind === 'postgres' ? limitIdle(tx, leaseMs) : undefined;
            // The fence comes last, so that the job's row is locked for microseconds and not for the length of `fn`.
            const saved = await saveCheckpoints(tx, [toInput(write)], write.kind === 'STEP' ? 'refuse' : 'advance');
            await limit;
            if (saved.length === 0) throw new LeaseLost(jobId, attempt);
            // The commit of an earlier try, whose answer was lost, came after all: these writes are its repetition.
            if (saved.some((row) => !row.saved)) throw new AlreadySaved();
            return saved;
          },
          { timeoutMs: USER_TRANSACTION_MS },
        );
        announce(channel, rows);
        return { data: JSON.parse(write?.data ?? 'null'), existed: false };
      } catch (error) {
        const done = error instanceof AlreadySaved || isUniqueViolation(error, 'checkpoints_job_id_epoch_key_pk');
        if (write && done) return savedBefore(db, write);
        throw error;
      }
    },

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

/**
 * Only COMMIT follows the fence. A process that is frozen, or cut off, between the two would hold the job's row, and with
 * it whoever cancels or rescues the job. Sent ahead of the fence on the same connection, so it takes no time of its own.
 */
function limitIdle(tx: Executor, leaseMs: number): Promise<unknown> {
  const limit = tx.query(`select set_config('idle_in_transaction_session_timeout', $1, true)`, [`${leaseMs}ms`]);
  // When this fails, so does the fence, which is waited for first.
  limit.catch(() => {});
  return limit;
}

/** Rolls a user's transaction back; never leaves this file. */
class AlreadySaved extends Error {}

function toInput(write: CheckpointWrite): CheckpointInput {
  return {
    jobId: write.jobId,
    attempt: write.attempt,
    key: write.key,
    kind: write.kind,
    data: write.data,
    processed: write.processed ?? null,
    succeeded: write.succeeded ?? null,
    failed: write.failed ?? null,
    errorSamples: write.errorSamples ? JSON.stringify(write.errorSamples) : null,
    progress: write.progress ? JSON.stringify(write.progress) : null,
  };
}
