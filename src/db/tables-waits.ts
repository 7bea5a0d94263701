import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  customType,
  index,
  integer,
  json,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { at, waymark } from './tables-base.ts';

const bytea = customType<{ data: Uint8Array }>({ dataType: () => 'bytea' });

export const approvals = waymark.table(
  'approvals',
  {
    id: uuid('id').primaryKey(),
    tenant: text('tenant').notNull(),
    jobId: uuid('job_id').notNull(),
    run: integer('run').notNull(),
    epoch: integer('epoch').notNull(),
    key: text('key').notNull(),
    state: text('state').notNull(),
    /** A retry, or a start from scratch, asks again: this one is history. */
    superseded: boolean('superseded').notNull().default(false),
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
    index('approvals_job').on(t.jobId, t.id),
    uniqueIndex('approvals_key').on(t.jobId, t.epoch, t.key).where(sql`not ${t.superseded}`),
    index('approvals_list').on(t.tenant, t.requestedAt, t.id),
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

/** What a job waits for: jobs that go before it (DEPENDENCY), and the children of its handler (CHILD). */
export const jobDependencies = waymark.table(
  'job_dependencies',
  {
    jobId: uuid('job_id').notNull(),
    upstreamId: uuid('upstream_id').notNull(),
    kind: text('kind').notNull(),
    /** DEPENDENCY: CANCEL, FAIL or CONTINUE. CHILD: CONTINUE, or CANCEL_SIBLINGS. */
    policy: text('policy').notNull(),
    /** As given: 0, 1, 2… */
    position: integer('position').notNull(),
    satisfiedAt: at('satisfied_at'),
  },
  (t) => [
    primaryKey({ columns: [t.jobId, t.upstreamId, t.kind] }),
    index('job_dependencies_upstream').on(t.upstreamId),
    index('job_dependencies_open').on(t.jobId).where(sql`${t.satisfiedAt} is null`),
    check('job_dependencies_kind', sql`${t.kind} in ('DEPENDENCY', 'CHILD')`),
    check('job_dependencies_policy', sql`${t.policy} in ('CANCEL', 'FAIL', 'CONTINUE', 'CANCEL_SIBLINGS')`),
  ],
);

/** A job that ended (ENDED) or was retried (REVIVED), whose dependants, parent, children or key are still to be told. */
export const followups = waymark.table(
  'followups',
  {
    // Not (job, run): who adds one must never wait for whoever is just carrying one out.
    id: uuid('id').primaryKey().defaultRandom(),
    jobId: uuid('job_id').notNull(),
    kind: text('kind').notNull(),
    createdAt: at('created_at').notNull(),
  },
  (t) => [index('followups_job').on(t.jobId), check('followups_kind', sql`${t.kind} in ('ENDED', 'REVIVED')`)],
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
    /** `[{ "from", "to", "policy" }]`, by the names of nodes. */
    edges: json('edges').notNull(),
    createdAt: at('created_at').notNull(),
    prunedAt: at('pruned_at'),
  },
  (t) => [index('graphs_list').on(t.tenant, t.createdAt, t.id)],
);

/** Which job each node of a graph is. A node whose key existed is a job of another graph, or of none. */
export const graphNodes = waymark.table(
  'graph_nodes',
  {
    graphId: uuid('graph_id').notNull(),
    name: text('name').notNull(),
    /** As given: 0, 1, 2… */
    position: integer('position').notNull(),
    jobId: uuid('job_id').notNull(),
    deduplicated: boolean('deduplicated').notNull(),
  },
  (t) => [primaryKey({ columns: [t.graphId, t.name] }), index('graph_nodes_job').on(t.jobId)],
);

export const artifacts = waymark.table(
  'artifacts',
  {
    jobId: uuid('job_id').notNull(),
    name: text('name').notNull(),
    mediaType: text('media_type').notNull(),
    bytes: bigint('bytes', { mode: 'number' }).notNull(),
    sha256: text('sha256').notNull(),
    /** Where its bytes are: `file` (data directory), `database`, `s3`. */
    location: text('location').notNull(),
    createdAt: at('created_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.jobId, t.name] }), index('artifacts_sha256').on(t.sha256)],
);

/** Contents of artifacts that are kept in Postgres, each once whoever needs it. */
export const artifactContents = waymark.table('artifact_contents', {
  sha256: text('sha256').primaryKey(),
  data: bytea('data').notNull(),
  createdAt: at('created_at').notNull(),
});

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
