import type { JobState } from '../../core/state.ts';
import { type ChangeRow, COUNT_DELTAS, MOVED, WRITE_EVENTS } from '../changes.ts';
import { column, jsonColumn, jsonColumnSql, pgArray, pgTextArray, textColumn } from '../sql.ts';
import type { Executor } from '../types.ts';

/** A job to be written, checked and complete. */
export interface NewJob {
  id: string;
  tenant: string;
  task: string;
  title: string | null;
  queue: string;
  priority: number;
  tags: readonly string[];
  inputDigest: string;
  idempotencyKey: string | null;
  keyScope: 'RETENTION' | 'UNTIL_FINISHED';
  submittedBy: string;
  concurrencyKey: string | null;
  maxAttempts: number;
  timeoutMs: number | null;
  stallTimeoutMs: number | null;
  /** JSON text. */
  backoff: string;
  runAt: string | null;
  delayMs: number | null;
  /** JSON text; null: no input was given. */
  input: string | null;
}

/** What became of a NewJob. `inserted` is null when the job was there already: under its key, or by a repeated call. */
export interface SubmitRow {
  id: string;
  /** The job that the key belongs to; the job's own id when it has no key. */
  jobId: string;
  /** Digest and scope stored with the key; null without one. */
  keyDigest: string | null;
  keyScope: 'RETENTION' | 'UNTIL_FINISHED' | null;
  inserted: InsertedRow | null;
}

/** The change that a submit made, with what the store alone knows of the new job. */
export interface InsertedRow extends ChangeRow {
  rank: string;
  runAt: string;
}

const columns = `
with t as materialized (select clock_timestamp() as now),
i as materialized (
  select x.*, t.now,
         coalesce(x.run_at, t.now + x.delay_ms * interval '1 millisecond', t.now) as due
  from t, unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::text[], $8::text[],
                 $9::text[], $10::text[], $11::text[], $12::text[], $13::int[], $14::bigint[], $15::bigint[],
                 ${jsonColumnSql('$16')}, $17::timestamptz[], $18::bigint[], ${jsonColumnSql('$19')})
    as x(id, tenant, task, title, queue, priority, tags, input_digest, key, key_scope, submitted_by, concurrency_key,
         max_attempts, timeout_ms, stall_timeout_ms, backoff, run_at, delay_ms, input)
)`;

// DO UPDATE and not DO NOTHING: a caller that loses the race must get the winner's row in this very statement (E1).
// Keys are inserted in order, so that two bulk submits of the same keys cannot wait for each other (E3).
// "Its job is seen to be finished", and not "no unfinished job is seen": `k` is the newest version of the key, but the
// jobs are those of this statement's snapshot, in which the job of a caller who won a moment ago is not there at all.
const keys = `,
k as (
  insert into waymark.idempotency_keys as k (tenant, kind, name, key, job_id, digest, scope, created_at, expires_at)
  select i.tenant, 'task', i.task, i.key, i.id, i.input_digest, i.key_scope, i.now,
         i.now + $21::bigint * interval '1 millisecond'
  from i where i.key is not null
  order by i.tenant, i.task, i.key
  on conflict (tenant, kind, name, key) do update
  set (job_id, digest, scope, created_at, expires_at) = (
    select case when f.free then excluded.job_id else k.job_id end,
           case when f.free then excluded.digest else k.digest end,
           case when f.free then excluded.scope else k.scope end,
           case when f.free then excluded.created_at else k.created_at end,
           case when f.free then excluded.expires_at else k.expires_at end
    from (select case when k.scope = 'UNTIL_FINISHED' then exists (
                        select 1 from waymark.job_states s where s.id = k.job_id and s.finished_at is not null)
                      else k.expires_at <= excluded.created_at end as free) f
  )
  returning k.tenant, k.name, k.key, k.job_id, k.digest, k.scope
),
n as materialized (
  select i.* from i left join k on k.tenant = i.tenant and k.name = i.task and k.key = i.key
  where i.key is null or k.job_id = i.id
)`;
const noKeys = ', n as (select * from i)';

// A job that is there already was written by an earlier call whose answer was lost: ids are made before the first try.
// Only a repetition looks for that, since the check costs a third of the insert.
const written = (repeated: boolean) => `,
j as (
  insert into waymark.jobs (id, tenant, task, title, queue, priority, tags, input_digest, idempotency_key, submitted_by,
                            concurrency_key, timeout_ms, stall_timeout_ms, backoff, created_at)
  select n.id, n.tenant, n.task, n.title, n.queue, n.priority, n.tags::text[], n.input_digest, n.key, n.submitted_by,
         n.concurrency_key, n.timeout_ms, n.stall_timeout_ms, n.backoff::json, n.now
  from n
  ${repeated ? 'on conflict (id) do nothing returning id' : ''}
),
m as materialized (
  select n.id, n.tenant, n.task, n.queue, null::text as from_state,
         case when n.due > n.now then 'SCHEDULED' else 'QUEUED' end as state, 1 as version, 1 as last_seq, 1 as run,
         n.max_attempts, n.due as run_at, n.now, n.input, n.input_digest, n.submitted_by,
         greatest(n.due, n.now) - n.priority * $20::bigint * interval '1 millisecond' as rank
  from n ${repeated ? 'join j on j.id = n.id' : ''}
),
s as (
  insert into waymark.job_states (id, tenant, task, queue, state, max_attempts, rank, run_at, queued_at, changed_at)
  select m.id, m.tenant, m.task, m.queue, m.state, m.max_attempts, m.rank, m.run_at,
         case when m.state = 'QUEUED' then m.now end, m.now
  from m
),
p as (
  insert into waymark.payloads (job_id, kind, data)
  select m.id, 'input', m.input::json from m where m.input is not null
),
v as materialized (
  select ${MOVED}, 1 as seq, m.now as at, 'JobSubmitted' as type, null::int as attempt, m.submitted_by as actor,
         json_build_object('inputDigest', m.input_digest) as data, m.rank, m.run_at
  from m
),
${WRITE_EVENTS},
${COUNT_DELTAS}`;

// What is written of a new job is what was given, but for what the store alone knows. Without a key, and for the first time,
// every job is a new one.
const answer = (keyed: boolean, repeated: boolean) => `
select ${keyed || repeated ? 'i' : 'v'}.id, v.state, v.at, v.rank, v.run_at as "runAt"
       ${keyed ? ', k.job_id as "keyJobId", k.digest as "keyDigest", k.scope as "keyScope"' : ''}
from ${keyed || repeated ? 'i left join v on v.id = i.id' : 'v'}
${keyed ? 'left join k on k.tenant = i.tenant and k.name = i.task and k.key = i.key' : ''}`;

const statement = (keyed: boolean, repeated: boolean) =>
  columns + (keyed ? keys : noKeys) + written(repeated) + answer(keyed, repeated);
const SUBMIT = { first: statement(false, false), repeated: statement(false, true) };
const SUBMIT_KEYED = { first: statement(true, false), repeated: statement(true, true) };

interface AnswerRow {
  id: string;
  /** Null when the job was there already; so are the next three. */
  state: JobState | null;
  at: string | null;
  rank: string | null;
  runAt: string | null;
  keyJobId?: string | null;
  keyDigest?: string | null;
  keyScope?: 'RETENTION' | 'UNTIL_FINISHED' | null;
}

/**
 * (new) → SCHEDULED | QUEUED, any number of jobs in one statement and one round trip. Equal keys must have been folded
 * by the caller: the statement fails on them (E2). Rows come back in no particular order.
 * @param options.repeated the same jobs may have been written by an earlier call whose answer was lost
 */
export async function submit(
  db: Executor,
  jobs: readonly NewJob[],
  options: { priorityStepMs: number; retainKeysMs: number; repeated?: boolean },
): Promise<SubmitRow[]> {
  const keyed = jobs.some((j) => j.idempotencyKey !== null);
  const params = [
    pgArray(jobs.map((j) => j.id)),
    pgTextArray(jobs.map((j) => j.tenant)),
    pgTextArray(jobs.map((j) => j.task)),
    textColumn(jobs.map((j) => j.title)),
    pgTextArray(jobs.map((j) => j.queue)),
    pgArray(jobs.map((j) => j.priority)),
    pgTextArray(jobs.map((j) => pgTextArray(j.tags))),
    pgTextArray(jobs.map((j) => j.inputDigest)),
    textColumn(jobs.map((j) => j.idempotencyKey)),
    pgTextArray(jobs.map((j) => j.keyScope)),
    pgTextArray(jobs.map((j) => j.submittedBy)),
    textColumn(jobs.map((j) => j.concurrencyKey)),
    pgArray(jobs.map((j) => j.maxAttempts)),
    column(jobs.map((j) => j.timeoutMs)),
    column(jobs.map((j) => j.stallTimeoutMs)),
    jsonColumn(jobs.map((j) => j.backoff)),
    textColumn(jobs.map((j) => j.runAt)),
    column(jobs.map((j) => j.delayMs)),
    jsonColumn(jobs.map((j) => j.input)),
    options.priorityStepMs,
  ];
  const which = options.repeated ? 'repeated' : 'first';
  const rows = keyed
    ? await db.query<AnswerRow>(SUBMIT_KEYED[which], [...params, options.retainKeysMs])
    : await db.query<AnswerRow>(SUBMIT[which], params);
  const byId = new Map(jobs.map((job) => [job.id, job]));
  return rows.map((row) => ({
    id: row.id,
    jobId: row.keyJobId ?? row.id,
    keyDigest: row.keyDigest ?? null,
    keyScope: row.keyScope ?? null,
    inserted: insertedRow(byId.get(row.id) as NewJob, row),
  }));
}

function insertedRow(job: NewJob, { state, at, rank, runAt }: AnswerRow): InsertedRow | null {
  if (state === null || at === null || rank === null || runAt === null) return null;
  return {
    id: job.id,
    tenant: job.tenant,
    task: job.task,
    queue: job.queue,
    fromState: null,
    state,
    version: 1,
    lastSeq: 1,
    run: 1,
    seq: 1,
    at,
    type: 'JobSubmitted',
    attempt: null,
    actor: job.submittedBy,
    data: { inputDigest: job.inputDigest },
    rank,
    runAt,
  };
}
