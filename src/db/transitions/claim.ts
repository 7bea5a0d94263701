import type { Backoff } from '../../core/backoff.ts';
import { type ChangeRow, COUNT_DELTAS, MOVED, WRITE_EVENTS } from '../changes.ts';
import { pgTextArray, probes } from '../sql.ts';
import type { Executor, SqlParam } from '../types.ts';

/** A claimed job, joined with what its handler needs; `startedChange` tells of it. */
export interface ClaimRow {
  id: string;
  tenant: string;
  task: string;
  queue: string;
  version: number;
  /** The `seq` of the AttemptStarted event, too. */
  lastSeq: number;
  run: number;
  attempt: number;
  at: string;
  /** Its place in the line, in microseconds since 1970; where that is in the future, this moment. */
  place: number;
  tags: string[];
  submittedBy: string;
  createdAt: string;
  epoch: number;
  failures: number;
  maxAttempts: number;
  timeoutMs: number | null;
  stallTimeoutMs: number | null;
  backoff: Backoff;
  hasInput: boolean;
  input: unknown;
  resumedFrom: string | null;
  /** It has jobs that went before it, or children. */
  depends: boolean;
}

// Why this shape (E11–E13): one index probe per (queue, task) through LATERAL keeps the claim index's order; an array
// in the place of `s.queue = q.name` would sort the whole backlog, and states as parameters would lose the partial
// index. The ids are kept as one array, so that the UPDATE goes by primary key whatever the statistics say.
// A worker whose lease is over gets nothing: what it claimed could be taken away.

/**
 * A claim of $1 (worker), $2 (queues), $3 (tasks), $4 (most jobs).
 * @param ids the select of one column that chooses, from `w` and `heads`
 * @param before CTEs in front of it, over `t(now)`, each with its comma
 * @param after CTEs over what was claimed, `m`, each with its comma
 */
export const claimSql = (ids: string, { before = '', after = '' } = {}) => `
with t as materialized (select clock_timestamp() as now),
w as materialized (
  select w.id from waymark.workers w, t where w.id = $1::uuid and w.state = 'ACTIVE' and w.lease_until > t.now
),
${before}
ids as materialized (select array(${ids}) as ids),
m as (
  update waymark.job_states s
  set state = 'RUNNING', worker_id = $1::uuid, attempt = s.attempt + 1, version = s.version + 1,
      last_seq = s.last_seq + 1, changed_at = greatest(t.now, s.changed_at),
      started_at = coalesce(s.started_at, t.now), last_advance_at = t.now,
      attempt_started_at = greatest(t.now, s.changed_at),
      resumed_from = case when s.attempt > 0 then (
        select c.key from waymark.checkpoints c
        where c.job_id = s.id and c.epoch = s.epoch order by c.sequence desc limit 1
      ) end
  from t
  where s.id = any((select ids from ids)::uuid[]) and s.state = 'QUEUED'
  returning s.id, s.tenant, s.task, s.queue, 'QUEUED'::text as from_state, s.state, s.version, s.last_seq, s.run,
            s.attempt, s.epoch, s.failures, s.max_attempts, s.changed_at, s.resumed_from, s.depends,
            (date_part('epoch', least(s.rank, t.now)) * 1e6)::bigint as place
),
v as materialized (
  select ${MOVED}, m.last_seq as seq, m.changed_at as at, 'AttemptStarted' as type, m.attempt, null as actor,
         json_build_object('workerId', $1::uuid, 'resumedFrom', m.resumed_from) as data,
         m.epoch, m.failures, m.max_attempts, m.resumed_from, m.depends, m.place
  from m
),
${after}
${WRITE_EVENTS},
${COUNT_DELTAS}
select v.id, v.tenant, v.task, v.queue, v.version, v.last_seq as "lastSeq", v.run, v.attempt, v.at, v.epoch, v.failures,
       v.max_attempts as "maxAttempts", v.resumed_from as "resumedFrom", v.depends, v.place, j.tags,
       j.submitted_by as "submittedBy", j.created_at as "createdAt", j.timeout_ms as "timeoutMs", j.stall_timeout_ms as "stallTimeoutMs",
       j.backoff::text as backoff, p.job_id is not null as "hasInput", p.data as input
from v
join waymark.jobs j on ${probes('j.id', 'v.id')}
left join lateral (
  select p.job_id, p.data from waymark.payloads p where p.job_id = v.id and p.kind = 'input' offset 0) p on true`;

/**
 * The first jobs in line of task `k.task` in queue `q.name`, locked; those that somebody else has locked are passed over.
 * @param within a further condition on `s`
 */
export const heads = (limit: string, within = 'true') => `
unnest($3::text[]) as k(task), lateral (
  select s.id, s.rank from waymark.job_states s
  where s.state = 'QUEUED' and not s.blocked and s.queue = q.name and s.task = k.task and ${within}
  order by s.rank, s.id
  limit ${limit}
  for no key update skip locked
) x`;

// A transaction takes its jobs' ranks before it commits: of two that commit at the same moment the later may bring the
// lower ranks. So `from` is meant with this much room.
const FROM = "s.rank >= coalesce(to_timestamp($5::float8 / 1e6) - interval '2 seconds', '-infinity')";

// A queue with a limit is claimed by a statement of its own, behind a lock (`claim-limited.ts`).
const CLAIM = claimSql(`
select x.id
from w, waymark.queues q, ${heads('$4::int', FROM)}
where not q.paused and q.max_running is null and q.rate_limit_max is null
  and ($2::text[] is null or q.name = any($2::text[]))
order by x.rank, x.id
limit $4::int`);

/** What a worker asks for. */
export interface ClaimRequest {
  /** Queues it serves; null: all. */
  queues: readonly string[] | null;
  tasks: readonly string[];
  limit: number;
  /**
   * Where in the line to begin, as `ClaimRow.place` has it: what stands more than two seconds before it is not looked at.
   * Left out or null: at the head. Queues with a limit are always looked at from the head.
   */
  from?: number | null;
}

/**
 * QUEUED → RUNNING for up to `limit` jobs of the given tasks, best rank first, in one statement. Queues that are paused
 * or have a limit are passed over.
 */
export function claim(db: Executor, workerId: string, request: ClaimRequest): Promise<ClaimRow[]> {
  return runClaim(db, CLAIM, workerId, request, [request.from ?? null]);
}

/** Runs a claim that `claimSql` made. `more`: its parameters from $5 on. */
export async function runClaim(
  db: Executor,
  sql: string,
  workerId: string,
  request: ClaimRequest,
  more: readonly SqlParam[] = [],
): Promise<ClaimRow[]> {
  const rows = await db.query<Omit<ClaimRow, 'backoff'> & { backoff: string | Backoff }>(sql, [
    workerId,
    request.queues === null ? null : pgTextArray(request.queues),
    pgTextArray(request.tasks),
    request.limit,
    ...more,
  ]);
  // Jobs of one task mostly share their backoff: it is read once.
  const backoffs = new Map<string, Backoff>();
  for (const row of rows) row.backoff = readOnce(row.backoff as string, backoffs);
  return rows as ClaimRow[];
}

function readOnce(text: string, known: Map<string, Backoff>): Backoff {
  let backoff = known.get(text);
  if (backoff === undefined) {
    backoff = JSON.parse(text) as Backoff;
    known.set(text, backoff);
  }
  return backoff;
}

/** The change that a claim made. */
export function startedChange(row: ClaimRow, workerId: string): ChangeRow {
  return {
    id: row.id,
    tenant: row.tenant,
    task: row.task,
    queue: row.queue,
    fromState: 'QUEUED',
    state: 'RUNNING',
    version: row.version,
    lastSeq: row.lastSeq,
    run: row.run,
    seq: row.lastSeq,
    at: row.at,
    type: 'AttemptStarted',
    attempt: row.attempt,
    actor: null,
    data: { workerId, resumedFrom: row.resumedFrom },
  };
}
