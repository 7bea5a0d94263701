import { MAX_CHILDREN } from '../core/dependency.ts';
import { ChildFailedError, NonRetryableError } from '../core/handler-errors.ts';
import { publicId } from '../core/ids.ts';
import type { Outcome, OutcomeRow } from '../core/outcome.ts';
import { validateWith } from '../core/standard-schema.ts';
import { isTerminal } from '../core/state.ts';
import type { AnyTask } from '../core/task.ts';
import { type SubmitJobOptions, submitRequest } from '../engine/submit-options.ts';
import type { JobsFromHandler } from '../engine/types.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptWrites } from './attempt-writes.ts';
import type { ChildrenOptions } from './wait-types.ts';
import type { Waits } from './waits.ts';

/** A job to be submitted by a handler. */
export interface JobSpec extends Omit<SubmitJobOptions, 'tx'> {
  task: AnyTask | string;
  input?: unknown;
}

/** Gives the results of the children in order, or submits them and suspends the attempt until they have ended. */
export async function runChildren(
  key: string,
  specs: readonly JobSpec[],
  { onFailure = 'throw' }: ChildrenOptions,
  writes: AttemptWrites,
  waits: Waits,
): Promise<unknown[]> {
  if (!Array.isArray(specs) || specs.length > MAX_CHILDREN) {
    throw new NonRetryableError(`children ${JSON.stringify(key)}: must be a list of at most ${MAX_CHILDREN} jobs`, {
      code: 'INVALID_OPTION',
    });
  }
  if (specs.length === 0) return [];
  const earlier = await writes.earlierOf(key, 'CHILDREN');
  const policy = onFailure === 'cancelSiblings' ? 'CANCEL_SIBLINGS' : 'CONTINUE';
  const saved = earlier?.data as { jobs: string[]; seen?: number[] } | undefined;
  const ids = saved?.jobs ?? (await submitJobs(key, specs, policy, writes));
  const children = [...new Set(ids)];
  const outcomes = await writes.childOutcomes({ key, children, seen: saved?.seen ?? null });
  const known = new Map(outcomes.map((row) => [row.jobId, row]));
  const rows = ids.map((id) => known.get(id) ?? removed(id));
  const unfinished = new Set(rows.filter((row) => !isTerminal(row.state)).map((row) => row.jobId)).size;
  if (unfinished > 0) return waits.park({ kind: 'CHILDREN', key, unfinished });
  if (onFailure === 'return') return rows.map(outcomeOf);
  const failed = rows.find((row) => row.state !== 'COMPLETED');
  if (failed) throw new ChildFailedError(publicId('Job', failed.jobId), describe(failed));
  return rows.map((row) => row.result ?? null);
}

/**
 * Submits jobs once, whatever attempt asks. Stored ids, in order.
 * @throws NonRetryableError with the code of what was refused
 */
export async function submitJobs(
  key: string,
  specs: readonly JobSpec[],
  children: JobsFromHandler['children'],
  writes: AttemptWrites,
): Promise<string[]> {
  try {
    const jobs = [];
    for (const [i, spec] of specs.entries()) {
      const at = children === null ? '' : `jobs[${i}].`;
      jobs.push(await jobOf(spec, at));
    }
    return await writes.submitJobs({ key, children, jobs });
  } catch (error) {
    // The handler asks for what cannot be: asking again changes nothing.
    const { code = '', message } = error as Error & { code?: string };
    if (error instanceof TypeError) throw new NonRetryableError(message, { code: 'INVALID_OPTION', cause: error });
    if (REFUSALS.has(code)) throw new NonRetryableError(message, { code, cause: error });
    throw error;
  }
}

/** Submits one job once, whatever attempt asks. The caller has checked the key. */
export async function submitOnce(key: string, spec: JobSpec, writes: AttemptWrites): Promise<{ jobId: string }> {
  const earlier = await writes.earlierOf(key, 'STEP');
  const ids = earlier ? [(earlier.data as { jobId: string }).jobId] : await submitJobs(key, [spec], null, writes);
  return { jobId: publicId('Job', ids[0] as string) };
}

/** The same within the handler's open transaction, whose checkpoint keeps it from being repeated. */
export async function submitWithin(
  tx: unknown,
  spec: JobSpec,
  attempt: Attempt,
  writes: AttemptWrites,
): Promise<{ jobId: string }> {
  attempt.assertWritable();
  return { jobId: publicId('Job', await writes.submitWithin(tx, await jobOf(spec, ''))) };
}

/** @param at where the job stands among those that were given: `jobs[3].`. @throws TypeError that names what is wrong */
async function jobOf(spec: JobSpec, at: string) {
  const { task, input, ...options } = { ...spec };
  const request = requestOf(at, () => submitRequest(task, input, options));
  await checkInput(task, input, `${at}input`);
  return { request, definition: typeof task === 'string' ? null : task.definition };
}

function requestOf<T>(at: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    // A TypeError names its option; an id that is none has it beside.
    const { message, path } = error as Error & { path?: string };
    throw new TypeError(`${at}${path === undefined ? '' : `${path}: `}${message}`, { cause: error });
  }
}

// By code and not by class: in a thread the worker's answer has only the code.
const REFUSALS = new Set([
  'INVALID_INPUT',
  'UNKNOWN_TASK',
  'IDEMPOTENCY_CONFLICT',
  'PAYLOAD_TOO_LARGE',
  'NOT_FOUND',
  'BAD_USER_INPUT',
]);

async function checkInput(task: AnyTask | string, input: unknown, path: string): Promise<void> {
  if (typeof task === 'string' || !task.inputSchema) return;
  const result = await validateWith(task.inputSchema, input, path);
  if (result.ok) return;
  const issues = result.issues.map((issue) => `${issue.path}: ${issue.message}`).join('; ');
  throw new NonRetryableError(`the input of ${task.name} is not what its schema wants: ${issues}`, {
    code: 'INVALID_INPUT',
  });
}

/** How a job ended, in public form. */
export function outcomeOf(row: OutcomeRow): Outcome {
  const job = { jobId: publicId('Job', row.jobId), task: row.task };
  if (row.state === 'COMPLETED') return { ...job, state: 'COMPLETED', result: row.result ?? null };
  if (row.state === 'FAILED' && row.error !== null) return { ...job, state: 'FAILED', error: row.error };
  return { ...job, state: 'CANCELED', reason: row.reason };
}

function describe({ jobId, task, state, error, reason }: OutcomeRow): string {
  const what = state === 'FAILED' ? 'failed' : 'was canceled';
  const why = error?.message ?? reason;
  return `child ${task} (${publicId('Job', jobId)}) ${what}${why ? `: ${why}` : ''}`;
}

function removed(jobId: string): OutcomeRow {
  return {
    jobId,
    task: '',
    name: null,
    state: 'CANCELED',
    run: 0,
    result: null,
    error: null,
    reason: 'it was removed',
  };
}
