import { sql } from 'drizzle-orm';
import { bigint, boolean, check, index, integer, json, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { at, waymark } from './tables-base.ts';

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

/** Starts in queues with a rate limit, one row per claim, as long as the limit looks back. */
export const queueStarts = waymark.table(
  'queue_starts',
  { queue: text('queue').notNull(), at: at('at').notNull(), n: integer('n').notNull() },
  (t) => [index('queue_starts_at').on(t.queue, t.at)],
);

/** The job of each concurrency key that goes first; whoever comes meanwhile, or has done with waiting for others, is blocked. */
export const concurrencyKeys = waymark.table(
  'concurrency_keys',
  { tenant: text('tenant').notNull(), key: text('key').notNull(), headJobId: uuid('head_job_id').notNull() },
  (t) => [primaryKey({ columns: [t.tenant, t.key] })],
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
    /** Its event loop was blocked for longer than allowed, so it gave its lease up. */
    hung: boolean('hung').notNull().default(false),
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
    /** The run of the job for which it holds. */
    run: integer('run').notNull().default(1),
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
