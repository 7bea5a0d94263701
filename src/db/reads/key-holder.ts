import { keyIsFree } from '../key-rules.ts';
import type { Executor } from '../types.ts';

const HOLDER = `
select k.job_id as id
from waymark.jobs j join waymark.idempotency_keys k
  on k.tenant = j.tenant and k.kind = 'task' and k.name = j.task and k.key = j.idempotency_key
where j.id = $1::uuid and j.key_scope = 'UNTIL_FINISHED' and k.job_id <> j.id and not ${keyIsFree('clock_timestamp()')}`;

/** The other job that has the key which this one needs while it is unfinished; null: none. */
export async function keyHolder(db: Executor, id: string): Promise<string | null> {
  return (await db.query<{ id: string }>(HOLDER, [id]))[0]?.id ?? null;
}
