import type { ArtifactLocation } from '../../core/artifact.ts';
import { CHANGE_COLUMNS, type ChangeRow, MOVED, WRITE_EVENTS } from '../changes.ts';
import { pgTextArray, probes } from '../sql.ts';
import type { Db, Executor, Tx } from '../types.ts';

/** Advisory locks of contents: the first of their two numbers. */
const CONTENT_LOCKS = 728_194_301;
const lockKey = (sha256: string) => `${CONTENT_LOCKS}, ('x' || left(${sha256}, 8))::bit(32)::int`;

const LOCK_CONTENT = `select pg_advisory_xact_lock_shared(${lockKey('$1::text')})`;

/**
 * Keeps a content from being removed until the transaction ends. Rows of artifacts are written under it, once the content
 * is seen to be there: whoever removes contents looks for rows under the same lock, taken for itself alone.
 */
export async function holdContent(tx: Tx, sha256: string): Promise<void> {
  await tx.query(LOCK_CONTENT, [sha256]);
}

const LOCK_CONTENTS = `
select x.sha256 from unnest($1::text[]) as x(sha256)
where pg_try_advisory_xact_lock(${lockKey('x.sha256')})`;

/** Takes contents for this transaction alone; those that somebody holds are left out of the answer. */
export async function takeContents(tx: Tx, sha256s: readonly string[]): Promise<string[]> {
  const rows = await tx.query<{ sha256: string }>(LOCK_CONTENTS, [pgTextArray(sha256s)]);
  return rows.map((row) => row.sha256);
}

// The row goes first and its event after it: `on conflict` alone sees the newest version of a row, so that a call whose
// first answer was lost writes nothing. The fence is the lock, as for checkpoints; an attempt that lost its job gets no row.
const SAVE = `
with t as materialized (select clock_timestamp() as now),
l as materialized (
  select s.id, greatest(t.now, s.changed_at) as at
  from waymark.job_states s, t
  where s.id = $1::uuid and s.worker_id is not null and s.attempt = $2::int
  for no key update of s
),
a as (
  insert into waymark.artifacts as a (job_id, name, media_type, bytes, sha256, location, created_at)
  select l.id, $3::text, $4::text, $5::bigint, $6::text, $7::text, l.at from l
  on conflict (job_id, name) do update
  set media_type = excluded.media_type, bytes = excluded.bytes, sha256 = excluded.sha256,
      location = excluded.location, created_at = excluded.created_at
  where (a.media_type, a.sha256, a.location) is distinct from (excluded.media_type, excluded.sha256, excluded.location)
  returning a.job_id, a.created_at
),
m as (
  update waymark.job_states s
  set version = s.version + 1, last_seq = s.last_seq + 1, changed_at = a.created_at, last_advance_at = t.now
  from a, t
  where ${probes('s.id', 'a.job_id')}
  returning s.id, s.tenant, s.task, s.queue, 'RUNNING'::text as from_state, s.state, s.version, s.last_seq, s.run,
            s.attempt, s.changed_at
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at, 'ArtifactStored' as type, m.attempt, null as actor,
         json_build_object('name', $3::text, 'mediaType', $4::text, 'bytes', $5::bigint, 'sha256', $6::text,
                           'createdAt', to_char(m.changed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) as data
  from m
),
${WRITE_EVENTS}
select l.id as "ownedId", coalesce(a.created_at, x.created_at) as "createdAt", ${CHANGE_COLUMNS}
from l
left join a on a.job_id = l.id
left join waymark.artifacts x on x.job_id = l.id and x.name = $3::text
left join v on v.id = l.id`;

export interface ArtifactInput {
  jobId: string;
  attempt: number;
  name: string;
  mediaType: string;
  bytes: number;
  sha256: string;
  location: ArtifactLocation;
}

/** `changes` is empty when the record was there already; `createdAt` is null when it was written in this very moment. */
export interface SavedArtifact {
  changes: ChangeRow[];
  createdAt: string | null;
}

/**
 * Writes the record of an artifact in the place of the job's former one of that name, with its event. Null: the attempt no
 * longer owns the job, and nothing was written.
 */
export async function saveArtifact(db: Executor, artifact: ArtifactInput): Promise<SavedArtifact | null> {
  const { jobId, attempt, name, mediaType, bytes, sha256, location } = artifact;
  const rows = await db.query<ChangeRow & { ownedId: string; createdAt: string | null }>(SAVE, [
    jobId,
    attempt,
    name,
    mediaType,
    bytes,
    sha256,
    location,
  ]);
  const [row] = rows;
  return row ? { changes: rows.filter(({ id }) => id !== null), createdAt: row.createdAt } : null;
}

const KEEP_CONTENT = `
insert into waymark.artifact_contents (sha256, data, created_at)
values ($1, decode($2::text, 'base64'), clock_timestamp())
on conflict (sha256) do nothing`;

/** Keeps a content in the database; one that is there stays. Only for one that the transaction holds. */
export async function keepContent(tx: Tx, sha256: string, data: Uint8Array): Promise<void> {
  const there = await tx.query(`select 1 as n from waymark.artifact_contents where sha256 = $1`, [sha256]);
  if (there.length > 0) return;
  const { buffer, byteOffset, byteLength } = data;
  await tx.query(KEEP_CONTENT, [sha256, Buffer.from(buffer, byteOffset, byteLength).toString('base64')]);
}

/** Removes contents from the database. Only for those that the transaction has taken, and that no row needs. */
export async function removeContents(tx: Tx, sha256s: readonly string[]): Promise<void> {
  await tx.query(`delete from waymark.artifact_contents where sha256 = any($1::text[])`, [pgTextArray(sha256s)]);
}

/**
 * A value that every process of this database shares: made by the first that asks, the same ever after.
 * @param make used when there is none yet
 */
export async function sharedValue(db: Db, key: string, make: () => string): Promise<string> {
  await db.query(`insert into waymark.meta (key, value) values ($1, $2) on conflict (key) do nothing`, [key, make()]);
  const [row] = await db.query<{ value: string }>(`select value from waymark.meta where key = $1`, [key]);
  return row?.value ?? '';
}
