import type { Db } from '../types.ts';

const HOT_TABLES = [
  'job_states',
  'jobs',
  'events',
  'payloads',
  'ended_attempts',
  'checkpoints',
  'job_dependencies',
  'idempotency_keys',
  'count_deltas',
  'counts',
  'workers',
  'followups',
] as const;

/** What autovacuum does on a server: the embedded database runs none. Each statement must stand alone, outside a transaction. */
export async function vacuumHotTables(db: Db): Promise<void> {
  for (const table of HOT_TABLES) await db.query(`vacuum (analyze) waymark.${table}`);
}
