import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  json,
  pgSchema,
  primaryKey,
  smallint,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { ATTEMPT_OUTCOMES, JOB_STATES, TERMINAL_STATES } from '../core/state.ts';

/**
 * Waymark's tables, all in the schema `waymark`, so that users can share the database. What a state change rewrites
 * is kept apart from what never changes: a change re-enters every index of its row. No foreign keys between the large
 * tables; the pruner owns integrity. JSON columns are `json`, not `jsonb`: a value must come back exactly as it was given.
 */
export const waymark = pgSchema('waymark');

const at = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' });
const list = (values: readonly string[]) => sql.raw(values.map((v) => `'${v}'`).join(', '));

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
    index('jobs_parent').on(t.parentId).where(sql`${t.parentId} is not null`),
    index('jobs_graph').on(t.graphId).where(sql`${t.graphId} is not null`),
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
    blocked: boolean('blocked').notNull().default(false),
    run: integer('run').notNull().default(1),
    epoch: integer('epoch').notNull().default(1),
    attempt: integer('attempt').notNull().default(0),
    failures: integer('failures').notNull().default(0),
    maxAttempts: integer('max_attempts').notNull(),
    stalls: integer('stalls').notNull().default(0),
    releases: integer('releases').notNull().default(0),
    suspensions: integer('suspensions').notNull().default(0),
    pendingDependencies: integer('pending_dependencies').notNull().default(0),
    version: integer('version').notNull().default(1),
    lastSeq: integer('last_seq').notNull().default(1),
    rank: at('rank').notNull(),
    runAt: at('run_at').notNull(),
    queuedAt: at('queued_at'),
    startedAt: at('started_at'),
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
  },
  (t) => [
    index('job_states_claim')
      .on(t.queue, t.task, t.rank, t.id)
      .where(sql`${t.state} = 'QUEUED' and not ${t.blocked}`),
    index('job_states_stage').on(t.runAt).where(sql`${t.state} in ('SCHEDULED', 'RETRYING')`),
    index('job_states_running').on(t.workerId).where(sql`${t.state} = 'RUNNING'`),
    index('job_states_waiting').on(t.state, t.id).where(sql`${t.state} in ('DEFERRED', 'WAITING_FOR_REVIEW')`),
    index('job_states_finished')
      .on(t.state, t.finishedAt, t.id)
      .where(sql`${t.finishedAt} is not null and ${t.prunedAt} is null`),
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

export const attempts = waymark.table(
  'attempts',
  {
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
  },
  (t) => [
    primaryKey({ columns: [t.jobId, t.number] }),
    check('attempts_outcome', sql`${t.outcome} is null or ${t.outcome} in (${list(ATTEMPT_OUTCOMES)})`),
    check('attempts_finished_at', sql`(${t.finishedAt} is null) = (${t.outcome} is null)`),
  ],
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

export const approvals = waymark.table(
  'approvals',
  {
    id: uuid('id').primaryKey(),
    tenant: text('tenant').notNull(),
    jobId: uuid('job_id').notNull(),
    epoch: integer('epoch').notNull(),
    key: text('key').notNull(),
    state: text('state').notNull(),
    title: text('title').notNull(),
    body: text('body'),
    schema: json('schema'),
    approvers: text('approvers').array().notNull(),
    requiredApprovals: integer('required_approvals').notNull(),
    allowSubmitter: boolean('allow_submitter').notNull(),
    onExpire: text('on_expire').notNull(),
    version: integer('version').notNull().default(1),
    digest: text('digest').notNull(),
    requestedAt: at('requested_at').notNull(),
    expiresAt: at('expires_at'),
    decidedAt: at('decided_at'),
    decidedBy: text('decided_by'),
    comment: text('comment'),
    data: json('data'),
  },
  (t) => [
    index('approvals_job').on(t.jobId),
    index('approvals_open').on(t.tenant, t.requestedAt, t.id).where(sql`${t.state} = 'OPEN'`),
    index('approvals_expiry').on(t.expiresAt).where(sql`${t.state} = 'OPEN' and ${t.expiresAt} is not null`),
  ],
);

export const approvalDecisions = waymark.table(
  'approval_decisions',
  {
    approvalId: uuid('approval_id').notNull(),
    actor: text('actor').notNull(),
    verdict: text('verdict').notNull(),
    comment: text('comment'),
    data: json('data'),
    at: at('at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.approvalId, t.actor] })],
);

export const jobDependencies = waymark.table(
  'job_dependencies',
  {
    jobId: uuid('job_id').notNull(),
    upstreamId: uuid('upstream_id').notNull(),
    policy: text('policy').notNull(),
    satisfiedAt: at('satisfied_at'),
  },
  (t) => [primaryKey({ columns: [t.jobId, t.upstreamId] }), index('job_dependencies_upstream').on(t.upstreamId)],
);

/** A settled job whose dependants, parent or concurrency key are still to be told. */
export const followups = waymark.table(
  'followups',
  { jobId: uuid('job_id').notNull(), run: integer('run').notNull(), createdAt: at('created_at').notNull() },
  (t) => [primaryKey({ columns: [t.jobId, t.run] })],
);

export const graphs = waymark.table(
  'graphs',
  {
    id: uuid('id').primaryKey(),
    tenant: text('tenant').notNull(),
    title: text('title').notNull(),
    idempotencyKey: text('idempotency_key'),
    inputDigest: text('input_digest').notNull(),
    submittedBy: text('submitted_by').notNull(),
    createdAt: at('created_at').notNull(),
    prunedAt: at('pruned_at'),
  },
  (t) => [index('graphs_list').on(t.tenant, t.createdAt, t.id)],
);

export const artifacts = waymark.table(
  'artifacts',
  {
    jobId: uuid('job_id').notNull(),
    name: text('name').notNull(),
    mediaType: text('media_type').notNull(),
    bytes: bigint('bytes', { mode: 'number' }).notNull(),
    sha256: text('sha256').notNull(),
    location: text('location').notNull(),
    createdAt: at('created_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.jobId, t.name] }), index('artifacts_sha256').on(t.sha256)],
);

/** Queues, tasks and workers belong to the deployment, not to a tenant: they are its machinery. */
export const queues = waymark.table('queues', {
  name: text('name').primaryKey(),
  id: uuid('id').notNull().unique(),
  paused: boolean('paused').notNull().default(false),
  pausedAt: at('paused_at'),
  pausedBy: text('paused_by'),
  pauseReason: text('pause_reason'),
  maxRunning: integer('max_running'),
  rateLimitMax: integer('rate_limit_max'),
  rateLimitPerMs: bigint('rate_limit_per_ms', { mode: 'number' }),
  createdAt: at('created_at').notNull(),
});

export const concurrencyKeys = waymark.table(
  'concurrency_keys',
  { tenant: text('tenant').notNull(), key: text('key').notNull(), headJobId: uuid('head_job_id').notNull() },
  (t) => [primaryKey({ columns: [t.tenant, t.key] })],
);

export const schedules = waymark.table(
  'schedules',
  {
    id: uuid('id').primaryKey(),
    tenant: text('tenant').notNull(),
    name: text('name').notNull(),
    task: text('task').notNull(),
    input: json('input'),
    cron: text('cron').notNull(),
    timezone: text('timezone').notNull(),
    overlap: text('overlap').notNull(),
    enabled: boolean('enabled').notNull(),
    options: json('options').notNull(),
    nextRunAt: at('next_run_at'),
    lastRunAt: at('last_run_at'),
    lastJobId: uuid('last_job_id'),
    createdAt: at('created_at').notNull(),
    changedAt: at('changed_at').notNull(),
  },
  (t) => [
    uniqueIndex('schedules_name').on(t.tenant, t.name),
    index('schedules_due').on(t.nextRunAt).where(sql`${t.enabled} and ${t.nextRunAt} is not null`),
  ],
);

export const workers = waymark.table(
  'workers',
  {
    id: uuid('id').primaryKey(),
    host: text('host').notNull(),
    pid: integer('pid').notNull(),
    queues: text('queues').array().notNull(),
    tasks: text('tasks').array().notNull(),
    /** task name → definition digest that this worker was built with. */
    taskDigests: json('task_digests').notNull(),
    slots: integer('slots').notNull(),
    busy: integer('busy').notNull().default(0),
    state: text('state').notNull(),
    startedAt: at('started_at').notNull(),
    heartbeatAt: at('heartbeat_at').notNull(),
    leaseUntil: at('lease_until').notNull(),
    blockedSince: at('blocked_since'),
  },
  (t) => [
    index('workers_lease').on(t.leaseUntil).where(sql`${t.state} <> 'LOST'`),
    check('workers_state', sql`${t.state} in ('ACTIVE', 'DRAINING', 'LOST')`),
  ],
);

/** Every definition ever registered and still of use; the newest of a live worker wins. */
export const tasks = waymark.table('tasks', { name: text('name').primaryKey(), id: uuid('id').notNull().unique() });

export const taskDefinitions = waymark.table(
  'task_definitions',
  {
    name: text('name').notNull(),
    digest: text('digest').notNull(),
    definition: json('definition').notNull(),
    registeredAt: at('registered_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.name, t.digest] })],
);

export const idempotencyKeys = waymark.table(
  'idempotency_keys',
  {
    tenant: text('tenant').notNull(),
    /** task, graph, schedule or child. */
    kind: text('kind').notNull(),
    name: text('name').notNull(),
    key: text('key').notNull(),
    jobId: uuid('job_id').notNull(),
    digest: text('digest').notNull(),
    scope: text('scope').notNull().default('RETENTION'),
    createdAt: at('created_at').notNull(),
    expiresAt: at('expires_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.tenant, t.kind, t.name, t.key] }),
    index('idempotency_keys_expiry').on(t.expiresAt),
    index('idempotency_keys_job').on(t.jobId),
  ],
);

export const apiKeys = waymark.table('api_keys', {
  id: uuid('id').primaryKey(),
  tenant: text('tenant').notNull(),
  prefix: text('prefix').notNull(),
  hash: text('hash').notNull().unique(),
  actor: text('actor').notNull(),
  groups: text('groups').array().notNull(),
  scopes: text('scopes').array().notNull(),
  createdAt: at('created_at').notNull(),
  expiresAt: at('expires_at'),
  revokedAt: at('revoked_at'),
  lastUsedAt: at('last_used_at'),
});

/**
 * How many jobs moved from one state to another, appended in the transaction that moved them. Maintenance folds rows
 * into `counts` and the per-minute counters; readers add what is not yet folded. No index: it is always read whole.
 */
export const countDeltas = waymark.table('count_deltas', {
  at: at('at').notNull(),
  tenant: text('tenant').notNull(),
  queue: text('queue').notNull(),
  task: text('task').notNull(),
  fromState: text('from_state'),
  toState: text('to_state'),
  n: integer('n').notNull(),
});

export const counts = waymark.table(
  'counts',
  {
    tenant: text('tenant').notNull(),
    queue: text('queue').notNull(),
    task: text('task').notNull(),
    state: text('state').notNull(),
    n: bigint('n', { mode: 'number' }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.tenant, t.queue, t.task, t.state] })],
);

export const minuteStats = waymark.table(
  'minute_stats',
  {
    minute: at('minute').notNull(),
    tenant: text('tenant').notNull(),
    queue: text('queue').notNull(),
    task: text('task').notNull(),
    fromState: text('from_state').notNull(),
    toState: text('to_state').notNull(),
    n: bigint('n', { mode: 'number' }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.minute, t.tenant, t.queue, t.task, t.fromState, t.toState] })],
);

/** `version`: newest migration applied. `min_compatible`: the oldest program version number that may use the database. */
export const meta = waymark.table('meta', { key: text('key').primaryKey(), value: text('value').notNull() });
