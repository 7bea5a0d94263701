import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

export type PayloadKind = 'input' | 'result';

const PAYLOADS = `
select p.job_id as "jobId", p.data
from waymark.payloads p join waymark.jobs j on j.id = p.job_id and j.tenant = $1
where p.job_id = any($2::text::uuid[]) and p.kind = $3`;

/** Input or result of many jobs, by job id. A job without a row has none; a row whose data is null holds JSON null. */
export async function payloadsOfJobs(
  db: Executor,
  tenant: string,
  kind: PayloadKind,
  jobIds: readonly string[],
): Promise<Map<string, unknown>> {
  const rows = await db.query<{ jobId: string; data: unknown }>(PAYLOADS, [tenant, pgArray(jobIds), kind]);
  return new Map(rows.map((r) => [r.jobId, r.data]));
}
