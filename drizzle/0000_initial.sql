CREATE SCHEMA "waymark";
--> statement-breakpoint
CREATE TABLE "waymark"."api_keys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"prefix" text NOT NULL,
	"hash" text NOT NULL,
	"actor" text NOT NULL,
	"groups" text[] NOT NULL,
	"scopes" text[] NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	"last_used_at" timestamp with time zone,
	CONSTRAINT "api_keys_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "waymark"."concurrency_keys" (
	"tenant" text NOT NULL,
	"key" text NOT NULL,
	"head_job_id" uuid NOT NULL,
	CONSTRAINT "concurrency_keys_tenant_key_pk" PRIMARY KEY("tenant","key")
);
--> statement-breakpoint
CREATE TABLE "waymark"."count_deltas" (
	"at" timestamp with time zone NOT NULL,
	"tenant" text NOT NULL,
	"queue" text NOT NULL,
	"task" text NOT NULL,
	"from_state" text,
	"to_state" text,
	"n" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "waymark"."counts" (
	"tenant" text NOT NULL,
	"queue" text NOT NULL,
	"task" text NOT NULL,
	"state" text NOT NULL,
	"n" bigint NOT NULL,
	CONSTRAINT "counts_tenant_queue_task_state_pk" PRIMARY KEY("tenant","queue","task","state")
);
--> statement-breakpoint
CREATE TABLE "waymark"."idempotency_keys" (
	"tenant" text NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"key" text NOT NULL,
	"job_id" uuid NOT NULL,
	"digest" text NOT NULL,
	"scope" text DEFAULT 'RETENTION' NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "idempotency_keys_tenant_kind_name_key_pk" PRIMARY KEY("tenant","kind","name","key")
);
--> statement-breakpoint
CREATE TABLE "waymark"."meta" (
	"key" text PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "waymark"."minute_stats" (
	"minute" timestamp with time zone NOT NULL,
	"tenant" text NOT NULL,
	"queue" text NOT NULL,
	"task" text NOT NULL,
	"from_state" text NOT NULL,
	"to_state" text NOT NULL,
	"n" bigint NOT NULL,
	CONSTRAINT "minute_stats_minute_tenant_queue_task_from_state_to_state_pk" PRIMARY KEY("minute","tenant","queue","task","from_state","to_state")
);
--> statement-breakpoint
CREATE TABLE "waymark"."queue_starts" (
	"queue" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"n" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "waymark"."queues" (
	"name" text PRIMARY KEY NOT NULL,
	"id" uuid NOT NULL,
	"paused" boolean DEFAULT false NOT NULL,
	"paused_at" timestamp with time zone,
	"paused_by" text,
	"pause_reason" text,
	"max_running" integer,
	"rate_limit_max" integer,
	"rate_limit_per_ms" bigint,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "queues_id_unique" UNIQUE("id")
);
--> statement-breakpoint
CREATE TABLE "waymark"."task_definitions" (
	"name" text NOT NULL,
	"digest" text NOT NULL,
	"definition" json NOT NULL,
	"registered_at" timestamp with time zone NOT NULL,
	CONSTRAINT "task_definitions_name_digest_pk" PRIMARY KEY("name","digest")
);
--> statement-breakpoint
CREATE TABLE "waymark"."tasks" (
	"name" text PRIMARY KEY NOT NULL,
	"id" uuid NOT NULL,
	CONSTRAINT "tasks_id_unique" UNIQUE("id")
);
--> statement-breakpoint
CREATE TABLE "waymark"."workers" (
	"id" uuid PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"pid" integer NOT NULL,
	"queues" text[] NOT NULL,
	"tasks" text[] NOT NULL,
	"task_digests" json NOT NULL,
	"slots" integer NOT NULL,
	"busy" integer DEFAULT 0 NOT NULL,
	"state" text NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"heartbeat_at" timestamp with time zone NOT NULL,
	"lease_until" timestamp with time zone NOT NULL,
	"blocked_since" timestamp with time zone,
	"hung" boolean DEFAULT false NOT NULL,
	CONSTRAINT "workers_state" CHECK ("waymark"."workers"."state" in ('ACTIVE', 'DRAINING', 'LOST'))
);
--> statement-breakpoint
CREATE TABLE "waymark"."approval_decisions" (
	"approval_id" uuid NOT NULL,
	"actor" text NOT NULL,
	"verdict" text NOT NULL,
	"comment" text,
	"data" json,
	"at" timestamp with time zone NOT NULL,
	CONSTRAINT "approval_decisions_approval_id_actor_pk" PRIMARY KEY("approval_id","actor")
);
--> statement-breakpoint
CREATE TABLE "waymark"."approvals" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"job_id" uuid NOT NULL,
	"run" integer NOT NULL,
	"epoch" integer NOT NULL,
	"key" text NOT NULL,
	"state" text NOT NULL,
	"superseded" boolean DEFAULT false NOT NULL,
	"title" text NOT NULL,
	"body" text,
	"schema" json,
	"approvers" text[] NOT NULL,
	"required_approvals" integer NOT NULL,
	"allow_submitter" boolean NOT NULL,
	"on_expire" text NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"digest" text NOT NULL,
	"requested_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone,
	"decided_at" timestamp with time zone,
	"decided_by" text,
	"comment" text,
	"data" json
);
--> statement-breakpoint
CREATE TABLE "waymark"."artifact_contents" (
	"sha256" text PRIMARY KEY NOT NULL,
	"data" "bytea" NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "waymark"."artifacts" (
	"job_id" uuid NOT NULL,
	"name" text NOT NULL,
	"media_type" text NOT NULL,
	"bytes" bigint NOT NULL,
	"sha256" text NOT NULL,
	"location" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "artifacts_job_id_name_pk" PRIMARY KEY("job_id","name")
);
--> statement-breakpoint
CREATE TABLE "waymark"."followups" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"job_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "followups_kind" CHECK ("waymark"."followups"."kind" in ('ENDED', 'REVIVED'))
);
--> statement-breakpoint
CREATE TABLE "waymark"."graph_nodes" (
	"graph_id" uuid NOT NULL,
	"name" text NOT NULL,
	"position" integer NOT NULL,
	"job_id" uuid NOT NULL,
	"deduplicated" boolean NOT NULL,
	CONSTRAINT "graph_nodes_graph_id_name_pk" PRIMARY KEY("graph_id","name")
);
--> statement-breakpoint
CREATE TABLE "waymark"."graphs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"title" text NOT NULL,
	"idempotency_key" text,
	"input_digest" text NOT NULL,
	"submitted_by" text NOT NULL,
	"edges" json NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"pruned_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "waymark"."job_dependencies" (
	"job_id" uuid NOT NULL,
	"upstream_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"policy" text NOT NULL,
	"position" integer NOT NULL,
	"satisfied_at" timestamp with time zone,
	CONSTRAINT "job_dependencies_job_id_upstream_id_kind_pk" PRIMARY KEY("job_id","upstream_id","kind"),
	CONSTRAINT "job_dependencies_kind" CHECK ("waymark"."job_dependencies"."kind" in ('DEPENDENCY', 'CHILD')),
	CONSTRAINT "job_dependencies_policy" CHECK ("waymark"."job_dependencies"."policy" in ('CANCEL', 'FAIL', 'CONTINUE', 'CANCEL_SIBLINGS'))
);
--> statement-breakpoint
CREATE TABLE "waymark"."schedules" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"name" text NOT NULL,
	"task" text NOT NULL,
	"input" json,
	"cron" text NOT NULL,
	"timezone" text NOT NULL,
	"overlap" text NOT NULL,
	"enabled" boolean NOT NULL,
	"options" json NOT NULL,
	"next_run_at" timestamp with time zone,
	"last_run_at" timestamp with time zone,
	"last_job_id" uuid,
	"created_at" timestamp with time zone NOT NULL,
	"changed_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "waymark"."checkpoints" (
	"job_id" uuid NOT NULL,
	"epoch" integer NOT NULL,
	"key" text NOT NULL,
	"sequence" integer NOT NULL,
	"kind" text NOT NULL,
	"data" json,
	"attempt" integer NOT NULL,
	"processed" bigint,
	"succeeded" bigint,
	"failed" bigint,
	"error_samples" json,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "checkpoints_job_id_epoch_key_pk" PRIMARY KEY("job_id","epoch","key")
);
--> statement-breakpoint
CREATE TABLE "waymark"."ended_attempts" (
	"job_id" uuid NOT NULL,
	"number" integer NOT NULL,
	"run" integer NOT NULL,
	"outcome" text NOT NULL,
	"digest" text NOT NULL,
	"error" json,
	"worker_id" uuid NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"finished_at" timestamp with time zone NOT NULL,
	"resumed_from" text,
	CONSTRAINT "ended_attempts_job_id_number_pk" PRIMARY KEY("job_id","number"),
	CONSTRAINT "ended_attempts_outcome" CHECK ("waymark"."ended_attempts"."outcome" in ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'STALLED', 'NOT_ADVANCING', 'CANCELED', 'SUSPENDED', 'POSTPONED', 'RELEASED'))
);
--> statement-breakpoint
CREATE TABLE "waymark"."events" (
	"job_id" uuid NOT NULL,
	"seq" integer NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"type" text NOT NULL,
	"run" integer NOT NULL,
	"attempt" integer,
	"actor" text,
	"state" text NOT NULL,
	"data" json,
	CONSTRAINT "events_job_id_seq_pk" PRIMARY KEY("job_id","seq")
);
--> statement-breakpoint
CREATE TABLE "waymark"."job_logs" (
	"job_id" uuid NOT NULL,
	"id" uuid NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"level" text NOT NULL,
	"message" text NOT NULL,
	"attempt" integer NOT NULL,
	"data" json,
	CONSTRAINT "job_logs_job_id_id_pk" PRIMARY KEY("job_id","id")
);
--> statement-breakpoint
CREATE TABLE "waymark"."job_states" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"task" text NOT NULL,
	"queue" text NOT NULL,
	"state" text NOT NULL,
	"blocked" boolean DEFAULT false NOT NULL,
	"concurrency_key" text,
	"waiting_kind" text,
	"depends" boolean DEFAULT false NOT NULL,
	"followed" boolean DEFAULT false NOT NULL,
	"failed_upstream_id" uuid,
	"run" integer DEFAULT 1 NOT NULL,
	"epoch" integer DEFAULT 1 NOT NULL,
	"attempt" integer DEFAULT 0 NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"max_attempts" integer NOT NULL,
	"stalls" integer DEFAULT 0 NOT NULL,
	"releases" integer DEFAULT 0 NOT NULL,
	"suspensions" integer DEFAULT 0 NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"last_seq" integer DEFAULT 1 NOT NULL,
	"rank" timestamp with time zone NOT NULL,
	"run_at" timestamp with time zone NOT NULL,
	"queued_at" timestamp with time zone,
	"started_at" timestamp with time zone,
	"attempt_started_at" timestamp with time zone,
	"resumed_from" text,
	"changed_at" timestamp with time zone NOT NULL,
	"finished_at" timestamp with time zone,
	"pruned_at" timestamp with time zone,
	"last_advance_at" timestamp with time zone,
	"worker_id" uuid,
	"progress" json,
	"error" json,
	"result_digest" text,
	"cancel_requested_at" timestamp with time zone,
	"cancel_requested_by" text,
	"cancel_reason" text,
	"cancel_delivered_at" timestamp with time zone,
	"cancel_stopped_at" timestamp with time zone,
	"cancel_forced" boolean DEFAULT false NOT NULL,
	"cancel_cascade" boolean DEFAULT true NOT NULL,
	CONSTRAINT "job_states_state" CHECK ("waymark"."job_states"."state" in ('DEFERRED', 'SCHEDULED', 'QUEUED', 'RUNNING', 'WAITING_FOR_REVIEW', 'RETRYING', 'COMPLETED', 'FAILED', 'CANCELED')),
	CONSTRAINT "job_states_finished_at" CHECK (("waymark"."job_states"."finished_at" is not null) = ("waymark"."job_states"."state" in ('COMPLETED', 'FAILED', 'CANCELED'))),
	CONSTRAINT "job_states_worker" CHECK (("waymark"."job_states"."worker_id" is not null) = ("waymark"."job_states"."state" = 'RUNNING')),
	CONSTRAINT "job_states_budget" CHECK ("waymark"."job_states"."failures" <= "waymark"."job_states"."max_attempts")
);
--> statement-breakpoint
CREATE TABLE "waymark"."jobs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"task" text NOT NULL,
	"title" text,
	"queue" text NOT NULL,
	"priority" smallint NOT NULL,
	"tags" text[] NOT NULL,
	"input_digest" text NOT NULL,
	"idempotency_key" text,
	"graph_id" uuid,
	"node_name" text,
	"parent_id" uuid,
	"schedule_id" uuid,
	"submitted_by" text NOT NULL,
	"concurrency_key" text,
	"timeout_ms" bigint,
	"stall_timeout_ms" bigint,
	"backoff" json NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "waymark"."payloads" (
	"job_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"data" json,
	CONSTRAINT "payloads_job_id_kind_pk" PRIMARY KEY("job_id","kind")
);
--> statement-breakpoint
CREATE INDEX "idempotency_keys_expiry" ON "waymark"."idempotency_keys" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "idempotency_keys_job" ON "waymark"."idempotency_keys" USING btree ("job_id");--> statement-breakpoint
CREATE INDEX "queue_starts_at" ON "waymark"."queue_starts" USING btree ("queue","at");--> statement-breakpoint
CREATE INDEX "workers_lease" ON "waymark"."workers" USING btree ("lease_until") WHERE "waymark"."workers"."state" <> 'LOST';--> statement-breakpoint
CREATE INDEX "approvals_job" ON "waymark"."approvals" USING btree ("job_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "approvals_key" ON "waymark"."approvals" USING btree ("job_id","epoch","key") WHERE not "waymark"."approvals"."superseded";--> statement-breakpoint
CREATE INDEX "approvals_list" ON "waymark"."approvals" USING btree ("tenant","requested_at","id");--> statement-breakpoint
CREATE INDEX "approvals_open" ON "waymark"."approvals" USING btree ("tenant","requested_at","id") WHERE "waymark"."approvals"."state" = 'OPEN';--> statement-breakpoint
CREATE INDEX "approvals_expiry" ON "waymark"."approvals" USING btree ("expires_at") WHERE "waymark"."approvals"."state" = 'OPEN' and "waymark"."approvals"."expires_at" is not null;--> statement-breakpoint
CREATE INDEX "artifacts_sha256" ON "waymark"."artifacts" USING btree ("sha256");--> statement-breakpoint
CREATE INDEX "followups_job" ON "waymark"."followups" USING btree ("job_id");--> statement-breakpoint
CREATE INDEX "graph_nodes_job" ON "waymark"."graph_nodes" USING btree ("job_id");--> statement-breakpoint
CREATE INDEX "graphs_list" ON "waymark"."graphs" USING btree ("tenant","created_at","id");--> statement-breakpoint
CREATE INDEX "job_dependencies_upstream" ON "waymark"."job_dependencies" USING btree ("upstream_id");--> statement-breakpoint
CREATE INDEX "job_dependencies_open" ON "waymark"."job_dependencies" USING btree ("job_id") WHERE "waymark"."job_dependencies"."satisfied_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "schedules_name" ON "waymark"."schedules" USING btree ("tenant","name");--> statement-breakpoint
CREATE INDEX "schedules_due" ON "waymark"."schedules" USING btree ("next_run_at") WHERE "waymark"."schedules"."enabled" and "waymark"."schedules"."next_run_at" is not null;--> statement-breakpoint
CREATE INDEX "job_states_claim" ON "waymark"."job_states" USING btree ("queue","task","rank","id") WHERE "waymark"."job_states"."state" = 'QUEUED' and not "waymark"."job_states"."blocked";--> statement-breakpoint
CREATE INDEX "job_states_blocked" ON "waymark"."job_states" USING btree ("queue") WHERE "waymark"."job_states"."state" = 'QUEUED' and "waymark"."job_states"."blocked";--> statement-breakpoint
CREATE INDEX "job_states_behind" ON "waymark"."job_states" USING btree ("tenant","concurrency_key","id") WHERE "waymark"."job_states"."blocked";--> statement-breakpoint
CREATE INDEX "job_states_failed_upstream" ON "waymark"."job_states" USING btree ("failed_upstream_id") WHERE "waymark"."job_states"."failed_upstream_id" is not null;--> statement-breakpoint
CREATE INDEX "job_states_stage" ON "waymark"."job_states" USING btree ("run_at") WHERE "waymark"."job_states"."state" in ('SCHEDULED', 'RETRYING');--> statement-breakpoint
CREATE INDEX "job_states_running" ON "waymark"."job_states" USING btree ("worker_id") WHERE "waymark"."job_states"."state" = 'RUNNING';--> statement-breakpoint
CREATE INDEX "job_states_waiting" ON "waymark"."job_states" USING btree ("state","id") WHERE "waymark"."job_states"."state" in ('DEFERRED', 'WAITING_FOR_REVIEW');--> statement-breakpoint
CREATE INDEX "job_states_finished" ON "waymark"."job_states" USING btree ("state","finished_at","id") WHERE "waymark"."job_states"."finished_at" is not null and "waymark"."job_states"."pruned_at" is null;--> statement-breakpoint
CREATE INDEX "job_states_bare" ON "waymark"."job_states" USING btree ("pruned_at") WHERE "waymark"."job_states"."pruned_at" is not null;--> statement-breakpoint
CREATE INDEX "jobs_list" ON "waymark"."jobs" USING btree ("tenant","created_at","id");--> statement-breakpoint
CREATE INDEX "jobs_list_task" ON "waymark"."jobs" USING btree ("tenant","task","created_at","id");--> statement-breakpoint
CREATE INDEX "jobs_key" ON "waymark"."jobs" USING btree ("tenant","idempotency_key") WHERE "waymark"."jobs"."idempotency_key" is not null;--> statement-breakpoint
CREATE INDEX "jobs_tags" ON "waymark"."jobs" USING gin ("tags") WHERE "waymark"."jobs"."tags" <> '{}';--> statement-breakpoint
CREATE INDEX "jobs_parent" ON "waymark"."jobs" USING btree ("parent_id") WHERE "waymark"."jobs"."parent_id" is not null;--> statement-breakpoint
CREATE INDEX "jobs_graph" ON "waymark"."jobs" USING btree ("graph_id") WHERE "waymark"."jobs"."graph_id" is not null;--> statement-breakpoint
CREATE INDEX "jobs_schedule" ON "waymark"."jobs" USING btree ("schedule_id","created_at") WHERE "waymark"."jobs"."schedule_id" is not null;--> statement-breakpoint
CREATE VIEW "waymark"."attempts" AS (select job_id, number, run, outcome, digest, error, worker_id, started_at, finished_at, resumed_from
from waymark.ended_attempts
union all
select id, attempt, run, null, null, null, worker_id, attempt_started_at, null, resumed_from
from waymark.job_states where worker_id is not null);--> statement-breakpoint
-- Edited by hand from here on: drizzle-kit cannot say storage parameters. Room in each page keeps updates heap-only
-- (no index is touched), and hot tables are vacuumed after a thousand dead rows, not after a fifth of the table.
ALTER TABLE "waymark"."job_states" SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02);--> statement-breakpoint
ALTER TABLE "waymark"."checkpoints" SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);--> statement-breakpoint
ALTER TABLE "waymark"."workers" SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);--> statement-breakpoint
ALTER TABLE "waymark"."count_deltas" SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);--> statement-breakpoint
ALTER TABLE "waymark"."followups" SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
