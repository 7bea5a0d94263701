import type { ProgressState } from '../../core/progress.ts';
import { CHANGE_COLUMNS, type ChangeRow, MOVED, WRITE_EVENTS } from '../changes.ts';
import { column, pgArray, pgTextArray, probes, textColumn } from '../sql.ts';
import type { Executor } from '../types.ts';

/** One checkpoint in stored form; JSON columns are texts. */
export interface CheckpointInput {
  jobId: string;
  attempt: number;
  key: string;
  kind: string;
  data: string;
  processed: number | null;
  succeeded: number | null;
  failed: number | null;
  errorSamples: string | null;
  progress: string | null;
}

// Locks, in id order, the jobs of the sorted list `i` that their attempts still own. LATERAL: one probe of the primary key
// for each of them, whatever the planner believes of the list's length.
const LOCK_OWNED = `
l as materialized (
  select i.* from i cross join lateral (
    select s.id from waymark.job_states s
    where s.id = i.id and s.worker_id is not null and s.attempt = i.attempt
    for no key update
  ) s
)`;

// The fence is the lock: it holds the state row, proves that the attempt owns the job, and takes the next seq.
// STEP keys are inserted and never replaced: a conflict (23505) means that the step was done before, and nothing of
// this statement remains.
const saveSql = (existing: 'refuse' | 'replace' | 'advance') => `
with t as materialized (select clock_timestamp() as now),
i as materialized (
  select * from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
                       $8::bigint[], $9::text[], $10::text[])
    as x(id, attempt, key, kind, data, processed, succeeded, failed, error_samples, progress)
  order by x.id
),
${LOCK_OWNED},
m as (
  update waymark.job_states s
  set version = s.version + 1, last_seq = s.last_seq + 1, changed_at = greatest(t.now, s.changed_at),
      last_advance_at = t.now, progress = coalesce(l.progress::json, s.progress)
  from l, t
  where ${probes('s.id', 'l.id')}
  returning s.id, s.tenant, s.task, s.queue, 'RUNNING'::text as from_state, s.state, s.version, s.last_seq, s.run,
            s.attempt, s.epoch, s.changed_at, l.key, l.kind, l.data, l.processed, l.succeeded, l.failed,
            l.error_samples
),
k as (
  insert into waymark.checkpoints as c (job_id, epoch, key, sequence, kind, data, attempt, processed, succeeded, failed,
                                        error_samples, created_at, updated_at)
  select m.id, m.epoch, m.key, m.last_seq, m.kind, m.data::json, m.attempt, m.processed, m.succeeded, m.failed,
         m.error_samples::json, m.changed_at, m.changed_at
  from m
  ${
    existing === 'refuse'
      ? ''
      : `on conflict (job_id, epoch, key) do update
  set sequence = excluded.sequence, kind = excluded.kind, data = excluded.data, attempt = excluded.attempt,
      processed = excluded.processed, succeeded = excluded.succeeded, failed = excluded.failed,
      error_samples = coalesce(excluded.error_samples, c.error_samples), updated_at = excluded.updated_at
  ${existing === 'advance' ? 'where c.processed is null or excluded.processed is null or excluded.processed > c.processed' : ''}`
  }
  returning c.job_id
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at, 'CheckpointSaved' as type, m.attempt, null as actor,
         json_build_object('key', m.key, 'kind', m.kind, 'processed', m.processed, 'succeeded', m.succeeded,
                           'failed', m.failed) as data
  from m
),
${WRITE_EVENTS}
select ${CHANGE_COLUMNS}, exists (select 1 from k where k.job_id = v.id) as saved
from v`;

const SAVE = { refuse: saveSql('refuse'), replace: saveSql('replace'), advance: saveSql('advance') };

/** `saved`: false when `advance` found the key saved with as much or more processed, and left it as it was. */
export type SavedRow = ChangeRow & { saved: boolean };

/**
 * Saves checkpoints, at most one per job, each with its event. Jobs that the attempt no longer owns are left out of
 * the answer.
 * @param existing what becomes of a key that is there: `refuse` fails the whole statement with 23505 on `checkpoints`,
 *   `replace` takes the new, `advance` takes the new only if it has processed more
 */
export function saveCheckpoints(
  db: Executor,
  writes: readonly CheckpointInput[],
  existing: keyof typeof SAVE,
): Promise<SavedRow[]> {
  return db.query<SavedRow>(SAVE[existing], [
    pgArray(writes.map((w) => w.jobId)),
    pgArray(writes.map((w) => w.attempt)),
    pgTextArray(writes.map((w) => w.key)),
    pgTextArray(writes.map((w) => w.kind)),
    pgTextArray(writes.map((w) => w.data)),
    column(writes.map((w) => w.processed)),
    column(writes.map((w) => w.succeeded)),
    column(writes.map((w) => w.failed)),
    textColumn(writes.map((w) => w.errorSamples)),
    textColumn(writes.map((w) => w.progress)),
  ]);
}

// Ordered lock first: beside a settle of the same jobs in another order this deadlocked by the hundred (E7). No index
// holds a column that is written here, so the update stays HOT (E9).
const FLUSH_PROGRESS = `
with i as materialized (
  select * from unnest($1::uuid[], $2::int[], $3::text[]) as x(id, attempt, progress) order by x.id
),
${LOCK_OWNED}
update waymark.job_states s
set progress = l.progress::json, version = s.version + 1, last_advance_at = clock_timestamp()
from l
where ${probes('s.id', 'l.id')}
returning s.id, s.tenant, s.task, s.queue, s.run, s.version, s.last_seq as "lastSeq", s.progress`;

export interface ProgressRow {
  id: string;
  tenant: string;
  task: string;
  queue: string;
  run: number;
  version: number;
  lastSeq: number;
  progress: ProgressState;
}

/** Writes the latest gauges of many jobs; those whose attempt no longer owns the job are left out of the answer. */
export function flushProgress(
  db: Executor,
  updates: readonly { jobId: string; attempt: number; progress: string }[],
): Promise<ProgressRow[]> {
  return db.query<ProgressRow>(FLUSH_PROGRESS, [
    pgArray(updates.map((u) => u.jobId)),
    pgArray(updates.map((u) => u.attempt)),
    pgTextArray(updates.map((u) => u.progress)),
  ]);
}

const APPEND_LOGS = `
insert into waymark.job_logs (job_id, id, at, level, message, attempt, data)
select x.job_id, x.id, x.at, x.level, x.message, x.attempt, x.data::json
from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::int[], $7::text[])
  as x(job_id, id, at, level, message, attempt, data)
where exists (select 1 from waymark.job_states s where s.id = x.job_id)
on conflict (job_id, id) do nothing`;

/** Appends log lines; lines of a job that is gone are dropped. */
export async function appendLogs(
  db: Executor,
  lines: readonly {
    jobId: string;
    id: string;
    at: string;
    level: string;
    message: string;
    attempt: number;
    data: string | null;
  }[],
): Promise<void> {
  await db.query(APPEND_LOGS, [
    pgArray(lines.map((l) => l.jobId)),
    pgArray(lines.map((l) => l.id)),
    pgTextArray(lines.map((l) => l.at)),
    pgTextArray(lines.map((l) => l.level)),
    pgTextArray(lines.map((l) => l.message)),
    pgArray(lines.map((l) => l.attempt)),
    pgTextArray(lines.map((l) => l.data)),
  ]);
}
