import type { ArtifactLocation, ArtifactRow } from '../../core/artifact.ts';
import { pgArray, pgTextArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';

const COLUMNS = `
  a.job_id as "jobId", a.name, a.media_type as "mediaType", a.bytes, a.sha256, a.location, a.created_at as "createdAt"`;

/** Most artifacts of a job that are listed. */
const MAX_LISTED = 1_000;

const OF_JOBS = `
select ${COLUMNS}
from unnest($2::text::uuid[]) as x(id)
join waymark.jobs j on j.id = x.id and j.tenant = $1
cross join lateral (
  select * from waymark.artifacts a where a.job_id = j.id order by a.name limit ${MAX_LISTED}
) a
order by a.job_id, a.name`;

/** Artifacts of many jobs, by name. */
export function artifactsOfJobs(db: Executor, tenant: string, jobIds: readonly string[]): Promise<ArtifactRow[]> {
  return db.query<ArtifactRow>(OF_JOBS, [tenant, pgArray(jobIds)]);
}

const BY_NAMES = `
select ${COLUMNS}
from unnest($2::text::uuid[], $3::text::text[]) as x(id, name)
join waymark.jobs j on j.id = x.id and j.tenant = $1
join waymark.artifacts a on a.job_id = j.id and a.name = x.name`;

/** Single artifacts as they are now; those that are gone are left out. */
export function artifactsByNames(
  db: Executor,
  tenant: string,
  keys: readonly { jobId: string; name: string }[],
): Promise<ArtifactRow[]> {
  return db.query<ArtifactRow>(BY_NAMES, [
    tenant,
    pgArray(keys.map((k) => k.jobId)),
    pgTextArray(keys.map((k) => k.name)),
  ]);
}

/** The record of a name, whosever it is. */
export async function artifactOf(db: Executor, jobId: string, name: string): Promise<ArtifactRow | null> {
  const [row] = await db.query<ArtifactRow>(
    `select ${COLUMNS} from waymark.artifacts a where a.job_id = $1::uuid and a.name = $2`,
    [jobId, name],
  );
  return row ?? null;
}

const UNNEEDED = `
select x.sha256 from unnest($1::text[]) as x(sha256)
where not exists (select 1 from waymark.artifacts a where ${probes('a.sha256', 'x.sha256')} and a.location = $2)`;

/** Which of these contents no artifact needs there. */
export async function unneededContents(
  db: Executor,
  sha256s: readonly string[],
  location: ArtifactLocation,
): Promise<string[]> {
  const rows = await db.query<{ sha256: string }>(UNNEEDED, [pgTextArray(sha256s), location]);
  return rows.map((row) => row.sha256);
}

/** Some of the contents that are kept in the database, behind `after` in their order. */
export async function keptContents(db: Executor, after: string, limit: number): Promise<string[]> {
  const rows = await db.query<{ sha256: string }>(
    `select sha256 from waymark.artifact_contents where sha256 > $1 order by sha256 limit $2::int`,
    [after, limit],
  );
  return rows.map((row) => row.sha256);
}

const SLICE = `
select substring(c.data from $2::int + 1 for $3::int) as data
from waymark.artifact_contents c where c.sha256 = $1`;

/** A piece of a content that is kept in the database, empty behind its end; null when it is not there. */
export async function contentSlice(
  db: Executor,
  sha256: string,
  from: number,
  bytes: number,
): Promise<Uint8Array | null> {
  const [row] = await db.query<{ data: Uint8Array }>(SLICE, [sha256, from, bytes]);
  return row?.data ?? null;
}
