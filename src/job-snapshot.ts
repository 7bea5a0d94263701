import { publicId } from './core/ids.ts';
import { type JobRow, toIso } from './core/job.ts';
import { isTerminal, type JobState } from './core/state.ts';

/**
 * A job as it was at one moment, for back ends: public ids, RFC 3339 times. A plain object that does not change; ask
 * again for a newer one, which has a higher `version`.
 */
export interface JobSnapshot {
  /** `job_…` */
  id: string;
  task: string;
  /** As given at submit, else the task's name. */
  title: string;
  queue: string;
  priority: number;
  tags: string[];
  state: JobState;
  isTerminal: boolean;
  run: number;
  version: number;
  lastSeq: number;
  submittedBy: string;
  idempotencyKey: string | null;
  inputDigest: string;
  attemptNumber: number;
  failures: number;
  maxAttempts: number;
  runAt: string;
  createdAt: string;
  startedAt: string | null;
  updatedAt: string;
  finishedAt: string | null;
  /** The last one; set in RETRYING and FAILED. */
  error: { code: string; message: string; retryable: boolean; attempt: number; at: string } | null;
  /** The gauge; null before the first report. */
  progress: {
    stage: string | null;
    current: number | null;
    total: number | null;
    unit: string | null;
    message: string | null;
  } | null;
}

export function snapshotOf(row: JobRow): JobSnapshot {
  const { error, progress: p } = row;
  return {
    id: publicId('Job', row.id),
    task: row.task,
    title: row.title ?? row.task,
    queue: row.queue,
    priority: row.priority,
    tags: [...row.tags],
    state: row.state,
    isTerminal: isTerminal(row.state),
    run: row.run,
    version: row.version,
    lastSeq: row.lastSeq,
    submittedBy: row.submittedBy,
    idempotencyKey: row.idempotencyKey,
    inputDigest: row.inputDigest,
    attemptNumber: row.attempt,
    failures: row.failures,
    maxAttempts: row.maxAttempts,
    runAt: toIso(row.runAt),
    createdAt: toIso(row.createdAt),
    startedAt: row.startedAt && toIso(row.startedAt),
    updatedAt: toIso(row.changedAt),
    finishedAt: row.finishedAt && toIso(row.finishedAt),
    error: error && {
      code: error.code,
      message: error.message,
      retryable: error.retryable,
      attempt: error.attempt,
      at: error.at,
    },
    progress: p && { stage: p.stage, current: p.current, total: p.total, unit: p.unit, message: p.message },
  };
}
