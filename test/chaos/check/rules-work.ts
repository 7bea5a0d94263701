import { isTerminal } from '../../../src/core/state.ts';
import { byJob } from './by-job.ts';
import type { Report } from './checker.ts';
import type { AttemptFact, CheckpointFact, History, JobFact, LedgerLine } from './history.ts';

/** I4, I8 and P5: was the work done by those who were to do it, and how often? */
export function accountOfWork(history: History, report: Report): void {
  const { jobs, written, counters, accepted } = history;
  const attemptsOf = byJob(history.attempts);
  const checkpointsOf = byJob(history.checkpoints);
  const ledgerOf = byJob(history.ledger);
  const inputs = new Map(accepted.map(({ id, plan }) => [id, plan.input]));
  const rows = new Map(written.map((w) => [w.jobId, w]));
  const values = new Map(counters.map((c) => [c.jobId, c.value]));

  const known = new Set(jobs.map((job) => job.id));
  for (const { jobId, step } of history.ledger)
    if (!known.has(jobId)) report('I4', `step ${step} of ${jobId}, which is no job, was executed`);
  for (const job of jobs) {
    const [attempts, checkpoints] = [attemptsOf(job.id), checkpointsOf(job.id)];
    const input = inputs.get(job.id) ?? {};
    stepsOnce(job, { attempts, checkpoints, lines: ledgerOf(job.id), input }, report);
    fromTheWinner(job, attempts, checkpoints, report);
    if (job.task === 'batches') rowsOnce(job, checkpoints, rows.get(job.id), input, report);
    if (job.task === 'counter') countedOnce(job, checkpoints, values.get(job.id) ?? 0, input, report);
  }
}

type Input = Readonly<Record<string, unknown>>;
/** The attempt that wrote it; an approval says `by` of people. */
const by = (data: unknown): number | undefined => {
  const said = (data as { by?: unknown } | null)?.by;
  return typeof said === 'number' ? said : undefined;
};

function stepsOnce(
  { id, task, state }: JobFact,
  o: {
    attempts: readonly AttemptFact[];
    checkpoints: readonly CheckpointFact[];
    lines: readonly LedgerLine[];
    input: Input;
  },
  report: Report,
): void {
  if (task !== 'steps') return;
  const saved = new Map(o.checkpoints.map((c) => [c.key, c.attempt]));
  const seen = new Set<string>();
  for (const { attempt, step, pid } of o.lines) {
    const what = `${id}: step ${step} was executed by attempt ${attempt} in process ${pid}`;
    const recorded = o.attempts.find((a) => a.number === attempt);
    if (!recorded) report('I4', `${what}, which is not recorded`);
    else if (recorded.pid !== null && recorded.pid !== pid) report('I4', `${what}, not in ${recorded.pid} as recorded`);
    const savedBy = saved.get(`step ${step}`);
    if (savedBy !== undefined && attempt > savedBy) report('I4', `${what}, though attempt ${savedBy} had finished it`);
    if (seen.has(`${attempt} ${step}`)) report('I4', `${what} twice`);
    seen.add(`${attempt} ${step}`);
  }
  const executed = new Set(o.lines.map((line) => line.step)).size;
  for (const key of isTerminal(state) ? saved.keys() : [])
    if (!o.lines.some((line) => `step ${line.step}` === key))
      report('I4', `${id}: ${key} is saved and was not executed`);
  // At most the step in flight is repeated, once for each attempt that did not come to its end.
  const repeated = o.lines.length - executed;
  if (repeated > Math.max(0, o.attempts.length - 1))
    report('I4', `${id}: ${repeated} steps were repeated in ${o.attempts.length} attempts`);
  if (state === 'COMPLETED' && saved.size !== o.input.n)
    report('I4', `${id} is COMPLETED with ${saved.size} of ${o.input.n} steps`);
}

function fromTheWinner(
  job: JobFact,
  attempts: readonly AttemptFact[],
  checkpoints: readonly CheckpointFact[],
  report: Report,
): void {
  const { id, state, attempt, result, hasResult, progressData } = job;
  const winner = attempts.at(-1);
  if (state === 'COMPLETED') {
    if (winner?.outcome !== 'SUCCEEDED') report('I8', `${id} is COMPLETED and attempt ${attempt} ${winner?.outcome}`);
    if (by(result) !== attempt) report('I8', `${id}: its result is from attempt ${by(result)}, ${attempt} won`);
    // Both report in every attempt, up to the end.
    if (
      (job.task === 'steps' || job.task === 'burst') &&
      by(progressData) !== undefined &&
      by(progressData) !== attempt
    )
      report('I8', `${id}: its progress is from attempt ${by(progressData)}, ${attempt} won`);
  } else if (hasResult) report('I8', `${id} is ${state} and has a result`);
  for (const { key, data, attempt: savedBy } of checkpoints) {
    if (by(data) !== undefined && by(data) !== savedBy)
      report('I8', `${id}: checkpoint ${key} of attempt ${savedBy} has data of attempt ${by(data)}`);
    if (!attempts.some((a) => a.number === savedBy))
      report('I8', `${id}: checkpoint ${key} is from attempt ${savedBy}, which is not recorded`);
  }
}

function rowsOnce(
  { id, state }: JobFact,
  checkpoints: readonly CheckpointFact[],
  found: History['written'][number] | undefined,
  input: Input,
  report: Report,
): void {
  const { rows = 0, items = 0 } = found ?? {};
  const processed = checkpoints.find((c) => c.key === 'items')?.processed ?? 0;
  if (rows !== items || rows !== processed)
    report('P5', `${id}: ${rows} rows of ${items} items are written, ${processed} are checkpointed`);
  if (state === 'COMPLETED' && rows !== input.items)
    report('P5', `${id} is COMPLETED with ${rows} of ${input.items} rows`);
}

function countedOnce(
  { id, state }: JobFact,
  checkpoints: readonly CheckpointFact[],
  value: number,
  input: Input,
  report: Report,
): void {
  if (value !== checkpoints.length) report('P5', `${id}: counted to ${value} with ${checkpoints.length} checkpoints`);
  if (state === 'COMPLETED' && value !== input.n)
    report('P5', `${id} is COMPLETED and counted to ${value} of ${input.n}`);
}
