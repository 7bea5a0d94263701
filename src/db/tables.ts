import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, integer, json, primaryKey, smallint, text, uuid } from 'drizzle-orm/pg-core';
import { ATTEMPT_OUTCOMES, JOB_STATES, TERMINAL_STATES } from '../core/state.ts';
import { at, list, waymark } from './tables-base.ts';

/** What never changes after submit; carries the list indexes. */
export const jobs = waymark.table(
  'jobs',
  {
    id: uuid('id').primaryKey(),
    tenant: text('tenant').notNull(),
    task: text('task').notNull(),
    title: text('title'),
    queue: text('queue').notNull(),
    priority: smallint('priority').notNull(),
    tags: text('tags').array().notNull(),
    inputDigest: text('input_digest').notNull(),
    idempotencyKey: text('idempotency_key'),
    /** UNTIL_FINISHED, or null: the key holds for its retention, or there is none. */
    keyScope: text('key_scope'),
    graphId: uuid('graph_id'),
    nodeName: text('node_name'),
    parentId: uuid('parent_id'),
    scheduleId: uuid('schedule_id'),
    submittedBy: text('submitted_by').notNull(),
    concurrencyKey: text('concurrency_key'),
    timeoutMs: bigint('timeout_ms', { mode: 'number' }),
    stallTimeoutMs: bigint('stall_timeout_ms', { mode: 'number' }),
    backoff: json('backoff').notNull(),
    createdAt: at('created_at').notNull(),
  },
  (t) => [
    index('jobs_list').on(t.tenant, t.createdAt, t.id),
    index('jobs_list_task').on(t.tenant, t.task, t.createdAt, t.id),
    index('jobs_key').on(t.tenant, t.idempotencyKey).where(sql`${t.idempotencyKey} is not null`),
    // Jobs without tags are not in it, so it costs nothing where none are used.
    index('jobs_tags').using('gin', t.tags).where(sql`${t.tags} <> '{}'`),
    index('jobs_parent').on(t.parentId).where(sql`${t.parentId} is not null`),
    index('jobs_graph').on(t.graphId).where(sql`${t.graphId} is not null`),
    index('jobs_schedule').on(t.scheduleId, t.createdAt).where(sql`${t.scheduleId} is not null`),
  ],
);

/** What changes. Only partial indexes, none on a column that a progress flush or a checkpoint writes: those stay HOT. */
export const jobStates = waymark.table(
  'job_states',
  {
    id: uuid('id').primaryKey(),
    tenant: text('tenant').notNull(),
    task: text('task').notNull(),
    queue: text('queue').notNull(),
    state: text('state').notNull(),
    /** Another job of its concurrency key goes first. */
    blocked: boolean('blocked').notNull().default(false),
    concurrencyKey: text('concurrency_key'),
    /** Why it is DEFERRED or SCHEDULED: DEPENDENCIES, CHILDREN, DUE_TIME, SLEEP. */
    waitingKind: text('waiting_kind'),
    /** It may have upstream jobs, children (rows in `job_dependencies`), or a graph. */
    depends: boolean('depends').notNull().default(false),
    /** Somebody is to be told when it ends (dependants, parent, key, approvers): it leaves a row in `followups`. */
    followed: boolean('followed').notNull().default(false),
    /** The upstream job because of which it was canceled or failed without having run. */
    failedUpstreamId: uuid('failed_upstream_id'),
    run: integer('run').notNull().default(1),
    epoch: integer('epoch').notNull().default(1),
    attempt: integer('attempt').notNull().default(0),
    failures: integer('failures').notNull().default(0),
    maxAttempts: integer('max_attempts').notNull(),
    stalls: integer('stalls').notNull().default(0),
    releases: integer('releases').notNull().default(0),
    suspensions: integer('suspensions').notNull().default(0),
    version: integer('version').notNull().default(1),
    lastSeq: integer('last_seq').notNull().default(1),
    rank: at('rank').notNull(),
    runAt: at('run_at').notNull(),
    queuedAt: at('queued_at'),
    startedAt: at('started_at'),
    /** Of the newest attempt. */
    attemptStartedAt: at('attempt_started_at'),
    /** Key of the checkpoint that the newest attempt found; null: it began from the start. */
    resumedFrom: text('resumed_from'),
    changedAt: at('changed_at').notNull(),
    finishedAt: at('finished_at'),
    /** Its belongings are gone; the bare row stays until the job's key expires. */
    prunedAt: at('pruned_at'),
    lastAdvanceAt: at('last_advance_at'),
    workerId: uuid('worker_id'),
    progress: json('progress'),
    error: json('error'),
    resultDigest: text('result_digest'),
    cancelRequestedAt: at('cancel_requested_at'),
    cancelRequestedBy: text('cancel_requested_by'),
    cancelReason: text('cancel_reason'),
    cancelDeliveredAt: at('cancel_delivered_at'),
    cancelStoppedAt: at('cancel_stopped_at'),
    cancelForced: boolean('cancel_forced').notNull().default(false),
    /** Whether a cancel takes the unfinished children along. */
    cancelCascade: boolean('cancel_cascade').notNull().default(true),
  },
  (t) => [
    index('job_states_claim').on(t.queue, t.task, t.rank, t.id).where(sql`${t.state} = 'QUEUED' and not ${t.blocked}`),
    index('job_states_blocked').on(t.queue).where(sql`${t.state} = 'QUEUED' and ${t.blocked}`),
    index('job_states_behind').on(t.tenant, t.concurrencyKey, t.id).where(sql`${t.blocked}`),
    index('job_states_failed_upstream').on(t.failedUpstreamId).where(sql`${t.failedUpstreamId} is not null`),
    index('job_states_stage').on(t.runAt).where(sql`${t.state} in ('SCHEDULED', 'RETRYING')`),
    index('job_states_running').on(t.workerId).where(sql`${t.state} = 'RUNNING'`),
    index('job_states_waiting').on(t.state, t.id).where(sql`${t.state} in ('DEFERRED', 'WAITING_FOR_REVIEW')`),
    index('job_states_finished')
      .on(t.state, t.finishedAt, t.id)
      .where(sql`${t.finishedAt} is not null and ${t.prunedAt} is null`),
    index('job_states_bare').on(t.prunedAt).where(sql`${t.prunedAt} is not null`),
    check('job_states_state', sql`${t.state} in (${list(JOB_STATES)})`),
    check('job_states_finished_at', sql`(${t.finishedAt} is not null) = (${t.state} in (${list(TERMINAL_STATES)}))`),
    check('job_states_worker', sql`(${t.workerId} is not null) = (${t.state} = 'RUNNING')`),
    check('job_states_budget', sql`${t.failures} <= ${t.maxAttempts}`),
  ],
);

/** `input`, `result` and large errors (`error`). "Has a result" is a row here, whatever its data. */
export const payloads = waymark.table(
  'payloads',
  { jobId: uuid('job_id').notNull(), kind: text('kind').notNull(), data: json('data') },
  (t) => [primaryKey({ columns: [t.jobId, t.kind] })],
);

/** Written once, as an attempt ends: while it runs, what is known of it stands in `job_states`. See `attempts`. */
export const endedAttempts = waymark.table(
  'ended_attempts',
  {
    jobId: uuid('job_id').notNull(),
    number: integer('number').notNull(),
    run: integer('run').notNull(),
    outcome: text('outcome').notNull(),
    digest: text('digest').notNull(),
    error: json('error'),
    workerId: uuid('worker_id').notNull(),
    startedAt: at('started_at').notNull(),
    finishedAt: at('finished_at').notNull(),
    resumedFrom: text('resumed_from'),
  },
  (t) => [
    primaryKey({ columns: [t.jobId, t.number] }),
    check('ended_attempts_outcome', sql`${t.outcome} in (${list(ATTEMPT_OUTCOMES)})`),
  ],
);

/** All attempts: those that have ended, and the one under way of each RUNNING job (outcome null). */
export const attempts = waymark
  .view('attempts', {
    jobId: uuid('job_id').notNull(),
    number: integer('number').notNull(),
    run: integer('run').notNull(),
    outcome: text('outcome'),
    digest: text('digest'),
    error: json('error'),
    workerId: uuid('worker_id').notNull(),
    startedAt: at('started_at').notNull(),
    finishedAt: at('finished_at'),
    resumedFrom: text('resumed_from'),
  })
  .as(
    sql`select job_id, number, run, outcome, digest, error, worker_id, started_at, finished_at, resumed_from
from waymark.ended_attempts
union all
select id, attempt, run, null, null, null, worker_id, attempt_started_at, null, resumed_from
from waymark.job_states where worker_id is not null`,
  );

export const checkpoints = waymark.table(
  'checkpoints',
  {
    jobId: uuid('job_id').notNull(),
    epoch: integer('epoch').notNull(),
    key: text('key').notNull(),
    sequence: integer('sequence').notNull(),
    kind: text('kind').notNull(),
    data: json('data'),
    attempt: integer('attempt').notNull(),
    processed: bigint('processed', { mode: 'number' }),
    succeeded: bigint('succeeded', { mode: 'number' }),
    failed: bigint('failed', { mode: 'number' }),
    errorSamples: json('error_samples'),
    createdAt: at('created_at').notNull(),
    updatedAt: at('updated_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.jobId, t.epoch, t.key] })],
);

/** Facts; append-only. `seq` is taken under the lock of the job's state row. */
export const events = waymark.table(
  'events',
  {
    jobId: uuid('job_id').notNull(),
    seq: integer('seq').notNull(),
    at: at('at').notNull(),
    type: text('type').notNull(),
    run: integer('run').notNull(),
    attempt: integer('attempt'),
    actor: text('actor'),
    state: text('state').notNull(),
    data: json('data'),
  },
  (t) => [primaryKey({ columns: [t.jobId, t.seq] })],
);

export const jobLogs = waymark.table(
  'job_logs',
  {
    jobId: uuid('job_id').notNull(),
    id: uuid('id').notNull(),
    at: at('at').notNull(),
    level: text('level').notNull(),
    message: text('message').notNull(),
    attempt: integer('attempt').notNull(),
    data: json('data'),
  },
  (t) => [primaryKey({ columns: [t.jobId, t.id] })],
);
