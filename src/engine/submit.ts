import { IdempotencyConflict, InvalidInput, Unavailable, UnknownTask } from '../core/errors.ts';
import { newUuid } from '../core/ids.ts';
import { textProblem } from '../core/json.ts';
import type { TaskDefinition } from '../core/task.ts';
import { taskDefinition, taskNames } from '../db/reads/task-definitions.ts';
import { type NewJob, type SubmitRow, submit as submitRows } from '../db/transitions/submit.ts';
import type { Database, Executor } from '../db/types.ts';
import { registerQueues } from '../db/writes/registry.ts';
import type { LiveChannel } from '../events/channel.ts';
import { createBatcher } from './batcher.ts';
import { announce } from './commit.ts';
import { createJsonSchemaChecker } from './json-schema.ts';
import { newJob } from './new-job.ts';
import { newJobRow } from './new-job-row.ts';
import type { EngineOptions, JobsEngine, SubmitOptions, SubmitRequest, Submitted } from './types.ts';

/** A registered definition is trusted this long: submits then cost one round trip, and a deployment is seen soon. */
const DEFINITION_TTL_MS = 1_000;
export const MAX_BULK = 1_000;

/** Submitting: checks, then one statement; concurrent calls share it. */
export function createSubmit(
  database: Database,
  channel: LiveChannel,
  options: EngineOptions,
): Pick<JobsEngine, 'submit' | 'submitMany'> {
  const db = database.submit;
  const schemas = createJsonSchemaChecker();
  const settings = { priorityStepMs: options.priorityStepMs, retainKeysMs: options.retainMs.keys };
  const known = new Map<string, { definition: TaskDefinition; until: number }>();
  const queues = new Set<string>();

  // Keyed submits may wait for another caller's open transaction that holds the key: they share no statement with others.
  const shared = { isShared: (e: unknown) => e instanceof Unavailable, maxSize: 500 };
  const plain = createBatcher<NewJob, SubmitRow>((jobs) => write(jobs), { ...shared, parallel: 2 });
  const keyed = createBatcher<NewJob, SubmitRow>((jobs) => writeKeyed(jobs), { ...shared, parallel: 4 });

  async function write(jobs: NewJob[]): Promise<SubmitRow[]> {
    const rows = await withRetry((repeated) => submitRows(db, jobs, { ...settings, repeated }));
    announce(
      channel,
      rows.flatMap((r) => r.inserted ?? []),
    );
    return inOrder(jobs, rows);
  }

  /** Equal keys are folded to their first job; the others get its row, as if they had come a moment later. */
  async function writeKeyed(jobs: NewJob[]): Promise<SubmitRow[]> {
    const first = new Map<string, NewJob>();
    for (const job of jobs) if (!first.has(keyOf(job))) first.set(keyOf(job), job);
    const leaders = [...first.values()];
    const rows = new Map((await write(leaders)).map((row, i) => [keyOf(leaders[i] as NewJob), row]));
    return jobs.map((job) => rows.get(keyOf(job)) as SubmitRow);
  }

  async function definitionOf(name: string, executor: Executor, path: string | undefined): Promise<TaskDefinition> {
    const cached = known.get(name);
    if (cached && cached.until > performance.now()) return cached.definition;
    const definition = textProblem(name) ? null : await taskDefinition(executor, name);
    if (!definition) {
      known.delete(name);
      throw new UnknownTask(name, await taskNames(executor), path);
    }
    known.set(name, { definition, until: performance.now() + DEFINITION_TTL_MS });
    return definition;
  }

  async function prepare(
    caller: Parameters<JobsEngine['submit']>[0],
    request: SubmitRequest,
    more: SubmitOptions,
  ): Promise<NewJob> {
    const executor = more.tx ?? db;
    const task = more.definition ?? (await definitionOf(request.task, executor, more.path));
    const job = await newJob(caller, request, task, {
      path: more.path ?? '',
      maxInputBytes: options.maxBytes.input,
      schemas,
      inputSchema: more.inputSchema,
    });
    if (!queues.has(job.queue)) {
      await registerQueues(executor, [{ id: newUuid(), name: job.queue }]);
      // Within the caller's transaction the queue's row may yet be rolled back.
      if (!more.tx) queues.add(job.queue);
    }
    return job;
  }

  return {
    async submit(caller, request, more = {}) {
      const job = await prepare(caller, request, more);
      if (more.tx) {
        const [row] = await submitRows(more.tx, [job], settings);
        return fate(job, row as SubmitRow, channel, more.path);
      }
      const row = await (job.idempotencyKey === null ? plain : keyed).add(job);
      return fate(job, row, null, more.path);
    },

    async submitMany(caller, requests, more = {}) {
      if (requests.length > MAX_BULK) {
        throw new InvalidInput([{ path: 'inputs', message: `must not be more than ${MAX_BULK}` }]);
      }
      const jobs: NewJob[] = [];
      for (const [i, request] of requests.entries()) {
        jobs.push(await prepare(caller, request, { path: `inputs[${i}]`, ...(more.tx ? { tx: more.tx } : {}) }));
      }
      if (jobs.length === 0) return [];
      if (more.tx) return bulk(more.tx, jobs, channel);
      if (jobs.every((j) => j.idempotencyKey === null)) {
        return (await write(jobs)).map((row, i) => fate(jobs[i] as NewJob, row, null, `inputs[${i}]`));
      }
      // A conflict must undo the whole call, so the statement gets a transaction round it.
      const done = await withRetry((repeated) => db.transaction((tx) => bulk(tx, jobs, channel, repeated)));
      for (const { wake } of done) wake();
      return done;
    },
  };

  async function bulk(tx: Executor, jobs: NewJob[], wakeBy: LiveChannel, repeated = false): Promise<Submitted[]> {
    const first = new Map<string, NewJob>();
    for (const job of jobs) {
      const key = job.idempotencyKey === null ? job.id : keyOf(job);
      if (!first.has(key)) first.set(key, job);
    }
    const leaders = [...first.entries()];
    const rows = inOrder(
      leaders.map(([, job]) => job),
      await submitRows(
        tx,
        leaders.map(([, job]) => job),
        { ...settings, repeated },
      ),
    );
    const byKey = new Map(leaders.map(([key], i) => [key, rows[i] as SubmitRow]));
    return jobs.map((job, i) => {
      const row = byKey.get(job.idempotencyKey === null ? job.id : keyOf(job)) as SubmitRow;
      return fate(job, row, wakeBy, `inputs[${i}]`);
    });
  }
}

function keyOf(job: NewJob): string {
  return JSON.stringify([job.tenant, job.task, job.idempotencyKey]);
}

function inOrder(jobs: readonly NewJob[], rows: readonly SubmitRow[]): SubmitRow[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return jobs.map((job) => byId.get(job.id) as SubmitRow);
}

/** The answer to one submit. @throws IdempotencyConflict */
function fate(job: NewJob, row: SubmitRow, wakeBy: LiveChannel | null, path: string | undefined): Submitted {
  const deduplicated = row.jobId !== job.id;
  if (deduplicated && row.keyScope === 'RETENTION' && row.keyDigest !== job.inputDigest) {
    throw new IdempotencyConflict(job.idempotencyKey ?? '', row.jobId, job.inputDigest, row.keyDigest ?? '', path);
  }
  const { inserted } = row;
  return {
    jobId: row.jobId,
    deduplicated,
    job: inserted && !deduplicated ? newJobRow(job, inserted) : null,
    wake: () => {
      if (wakeBy && inserted && inserted.id === row.jobId) announce(wakeBy, [inserted]);
    },
  };
}

/**
 * Repeats once when the connection broke in mid-call: the write may have happened, but the ids were made before, so the
 * repetition finds them and writes nothing twice.
 */
async function withRetry<T>(fn: (repeated: boolean) => Promise<T>): Promise<T> {
  try {
    return await fn(false);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    return fn(true);
  }
}
