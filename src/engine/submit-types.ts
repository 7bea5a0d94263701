import type { Backoff } from '../core/backoff.ts';
import type { DependencyPolicy, JobRow } from '../core/job.ts';
import type { StandardSchemaV1 } from '../core/standard-schema.ts';
import type { TaskDefinition } from '../core/task.ts';
import type { JobLinks } from '../db/transitions/submit.ts';
import type { Executor } from '../db/types.ts';

/** Who asks, and for whom. */
export interface Caller {
  tenant: string;
  /** `user:ada`, `key:ci`, `system:…`. */
  actor: string;
  /** Groups that the actor is in, as approvals name them without `group:`. Default none. */
  groups?: readonly string[];
}

/** What a client may say about a job at submit, in stored units. Checked by the engine. */
export interface SubmitRequest {
  /** Name of the task; must be registered, or be given as `definition`. */
  task: string;
  /** Left out: the handler gets `undefined`. */
  input?: unknown;
  title?: string | null;
  idempotencyKey?: string | null;
  keyScope?: 'RETENTION' | 'UNTIL_FINISHED' | null;
  queue?: string | null;
  priority?: number | null;
  tags?: readonly string[] | null;
  /** RFC 3339; exclusive with `delayMs`. In the past means now. */
  runAt?: string | null;
  delayMs?: number | null;
  maxAttempts?: number | null;
  timeoutMs?: number | null;
  backoff?: Backoff | null;
  concurrencyKey?: string | null;
  /** Jobs that go before it, by stored id. It is DEFERRED until they are done. */
  dependsOn?: readonly { jobId: string; policy?: DependencyPolicy | null }[] | null;
}

export interface SubmitOptions {
  /** Definition known in code: no look-up of the registered task. */
  definition?: TaskDefinition;
  /** Checks the input with the task's own schema in place of its JSON Schema. */
  inputSchema?: StandardSchemaV1 | undefined;
  /** The caller's own open transaction: the job exists if and only if it commits. */
  tx?: Executor;
  /** Prefix of error paths: `inputs[17]`. Default none. */
  path?: string;
  /** What it belongs to. Default nothing. */
  links?: Partial<Omit<JobLinks, 'dependsOn'>>;
}

export interface Submitted {
  jobId: string;
  deduplicated: boolean;
  /** The job as of the submit; null when it was there before: then only a read tells how it is. */
  job: JobRow | null;
  /** With `tx`: call it after the commit, to start the job at once; otherwise the next poll does. */
  wake: () => void;
}
