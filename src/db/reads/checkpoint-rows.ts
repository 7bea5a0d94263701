import type { CheckpointRow } from '../../core/job.ts';
import type { Executor } from '../types.ts';

/** The select list of a CheckpointRow over `c`. */
export const CHECKPOINT_COLUMNS = `
c.job_id as "jobId", c.epoch, c.key, c.sequence, c.kind, c.data, c.attempt, c.processed, c.succeeded, c.failed,
coalesce(c.error_samples, '[]'::json) as "errorSamples", c.created_at as "createdAt", c.updated_at as "updatedAt"`;

/** What a job has saved in an epoch, oldest first. */
export function checkpointsOf(db: Executor, jobId: string, epoch: number): Promise<CheckpointRow[]> {
  return db.query<CheckpointRow>(
    `select ${CHECKPOINT_COLUMNS} from waymark.checkpoints c
     where c.job_id = $1::uuid and c.epoch = $2::int order by c.sequence`,
    [jobId, epoch],
  );
}

/** One checkpoint, or null. */
export async function checkpointByKey(
  db: Executor,
  jobId: string,
  epoch: number,
  key: string,
): Promise<CheckpointRow | null> {
  const [row] = await db.query<CheckpointRow>(
    `select ${CHECKPOINT_COLUMNS} from waymark.checkpoints c
     where c.job_id = $1::uuid and c.epoch = $2::int and c.key = $3`,
    [jobId, epoch, key],
  );
  return row ?? null;
}
