ALTER TABLE "waymark"."idempotency_keys" ADD COLUMN "run" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "waymark"."jobs" ADD COLUMN "key_scope" text;--> statement-breakpoint
UPDATE "waymark"."jobs" j SET "key_scope" = k."scope" FROM "waymark"."idempotency_keys" k WHERE k."job_id" = j."id" AND k."kind" = 'task' AND k."scope" = 'UNTIL_FINISHED';
