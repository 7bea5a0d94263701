import { newUuid } from '../../src/core/ids.ts';
import { isTerminal, type JobState } from '../../src/core/state.ts';
import type { Db } from '../../src/db/types.ts';

/** A job as a test wants it; what is left out does not matter to it. Moments as Postgres prints them. */
export interface GivenJob {
  id?: string;
  state?: JobState;
  tenant?: string;
  task?: string;
  title?: string | null;
  queue?: string;
  tags?: string[];
  key?: string | null;
  submittedBy?: string;
  createdAt?: string;
  changedAt?: string;
  runAt?: string;
  errorCode?: string | null;
  workerId?: string;
  blocked?: boolean;
  pruned?: boolean;
  stallTimeoutMs?: number | null;
  lastAdvanceAt?: string;
}

export const SOME_MOMENT = '2026-01-01 00:00:00+00';

/** Writes jobs as they are asked for, past all rules but the constraints, and counts them. Returns their ids. */
export async function insertJobs(db: Db, jobs: readonly GivenJob[]): Promise<string[]> {
  const rows = jobs.map((given) => {
    const state = given.state ?? 'QUEUED';
    const changedAt = given.changedAt ?? SOME_MOMENT;
    return {
      tenant: 'default',
      task: 'echo',
      title: null,
      queue: 'default',
      tags: [],
      key: null,
      submittedBy: 'user:local',
      createdAt: SOME_MOMENT,
      runAt: SOME_MOMENT,
      errorCode: null,
      blocked: false,
      stallTimeoutMs: null,
      lastAdvanceAt: SOME_MOMENT,
      ...given,
      id: given.id ?? newUuid(),
      state,
      changedAt,
      finishedAt: isTerminal(state) ? changedAt : null,
      prunedAt: given.pruned ? changedAt : null,
      workerId: state === 'RUNNING' ? (given.workerId ?? newUuid()) : null,
    };
  });
  const x = `json_to_recordset($1::text::json) as x(
    id uuid, tenant text, task text, title text, queue text, tags json, key text, "submittedBy" text,
    "createdAt" timestamptz, "changedAt" timestamptz, "runAt" timestamptz, "finishedAt" timestamptz,
    "prunedAt" timestamptz, "errorCode" text, "workerId" uuid, state text, blocked boolean, "stallTimeoutMs" bigint,
    "lastAdvanceAt" timestamptz)`;
  const given = [JSON.stringify(rows)];
  await db.query(
    `insert into waymark.jobs (id, tenant, task, title, queue, priority, tags, input_digest, idempotency_key,
                               submitted_by, stall_timeout_ms, backoff, created_at)
     select x.id, x.tenant, x.task, x.title, x.queue, 0, array(select json_array_elements_text(x.tags)), '-', x.key,
            x."submittedBy", x."stallTimeoutMs", '{}', x."createdAt"
     from ${x}`,
    given,
  );
  await db.query(
    `insert into waymark.job_states (id, tenant, task, queue, state, blocked, max_attempts, rank, run_at, queued_at,
                                     changed_at, finished_at, pruned_at, worker_id, error, last_advance_at)
     select x.id, x.tenant, x.task, x.queue, x.state, x.blocked, 3, x."runAt", x."runAt", x."runAt", x."changedAt",
            x."finishedAt", x."prunedAt", x."workerId",
            case when x."errorCode" is not null then json_build_object('code', x."errorCode", 'message', 'm',
              'retryable', true, 'attempt', 1, 'at', x."changedAt") end, x."lastAdvanceAt"
     from ${x}`,
    given,
  );
  await db.query(
    `insert into waymark.count_deltas (at, tenant, queue, task, from_state, to_state, n)
     select now(), x.tenant, x.queue, x.task, null, x.state, 1 from ${x} where x."prunedAt" is null`,
    given,
  );
  return rows.map((row) => row.id);
}

/** Removes all jobs and what is counted of them. */
export async function deleteJobs(db: Db): Promise<void> {
  for (const table of ['jobs', 'job_states', 'counts', 'count_deltas', 'workers', 'queues']) {
    await db.query(`delete from waymark.${table}`);
  }
}
