import type { CheckpointRow } from '../../core/job.ts';
import { pgArray, pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { type BelongingsWindow, belongingsSql, countBelongings, windowParams } from './belongings.ts';

const COLUMNS = `
  b.job_id as "jobId", b.epoch, b.key, b.sequence, b.kind, b.data, b.attempt, b.processed, b.succeeded, b.failed,
  coalesce(b.error_samples, '[]'::json) as "errorSamples", b.created_at as "createdAt", b.updated_at as "updatedAt"`;

const PAGE = belongingsSql({
  table: 'checkpoints',
  columns: COLUMNS,
  key: 'b.sequence',
  keyType: 'int',
  where: 'b.epoch = s.epoch',
});

/** Checkpoints of many jobs, in the order in which they were saved last; only those that still count (this epoch). */
export function checkpointsOfJobs(
  db: Executor,
  tenant: string,
  jobIds: readonly string[],
  window: BelongingsWindow<number>,
): Promise<CheckpointRow[]> {
  return db.query<CheckpointRow>(PAGE[window.fromEnd ? 'fromEnd' : 'fromStart'], windowParams(tenant, jobIds, window));
}

/** How many checkpoints each job has. */
export function countCheckpoints(
  db: Executor,
  tenant: string,
  jobIds: readonly string[],
): Promise<Map<string, number>> {
  return countBelongings(db, 'checkpoints', tenant, jobIds);
}

const BY_KEYS = `
select ${COLUMNS}
from unnest($2::text::uuid[], $3::text::text[]) as x(id, key)
join waymark.jobs j on j.id = x.id and j.tenant = $1
join waymark.job_states s on s.id = j.id
join waymark.checkpoints b on b.job_id = j.id and b.epoch = s.epoch and b.key = x.key`;

/** Single checkpoints as they are now; those that are gone are left out. */
export function checkpointsByKeys(
  db: Executor,
  tenant: string,
  keys: readonly { jobId: string; key: string }[],
): Promise<CheckpointRow[]> {
  return db.query<CheckpointRow>(BY_KEYS, [
    tenant,
    pgArray(keys.map((k) => k.jobId)),
    pgTextArray(keys.map((k) => k.key)),
  ]);
}
