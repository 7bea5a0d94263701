import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, json, primaryKey, text, uniqueIndex, uuid } from 'drizzle-orm/pg-core';
import { at, waymark } from './tables-base.ts';

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
