import type { WorkerRow } from '../../core/job.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

const COLUMNS = `
  w.id, w.host, w.pid, w.queues, w.tasks, w.slots, w.busy, w.started_at as "startedAt",
  case when w.state <> 'LOST' and w.lease_until < clock_timestamp() then 'LOST' else w.state end as state,
  w.heartbeat_at as "heartbeatAt", w.lease_until as "leaseUntil", w.blocked_since as "blockedSince"`;

const BY_IDS = `select ${COLUMNS} from waymark.workers w where w.id = any($1::text::uuid[])`;
const ALL = `select ${COLUMNS} from waymark.workers w order by w.started_at, w.id limit 1000`;

/** Workers by id; those that are unknown or forgotten are left out. A lease that is over shows as LOST at once. */
export function workersByIds(db: Executor, ids: readonly string[]): Promise<WorkerRow[]> {
  return db.query<WorkerRow>(BY_IDS, [pgArray(ids)]);
}

/** All known workers, the longest running first. */
export function allWorkers(db: Executor): Promise<WorkerRow[]> {
  return db.query<WorkerRow>(ALL);
}
