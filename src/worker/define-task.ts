import { fileURLToPath } from 'node:url';
import { type BackoffOptions, DEFAULT_BACKOFF, parseBackoff } from '../core/backoff.ts';
import { durationMs } from '../core/duration.ts';
import { MAX_ATTEMPTS, MAX_TEXT, PRIORITY_RANGE } from '../core/job.ts';
import { type JsonValue, textProblem } from '../core/json.ts';
import { jsonSchemaOf, type StandardSchemaV1 } from '../core/standard-schema.ts';
import { TASK, type Task, type TaskDefinition } from '../core/task.ts';
import type { HandlerContext } from './context.ts';

type Input<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferInput<S> : JsonValue | undefined;
type Parsed<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : JsonValue | undefined;
type Returned<O> = O extends StandardSchemaV1 ? StandardSchemaV1.InferInput<O> : unknown;

/** What a user writes to define a task. Only `name` and `run` are required. */
export interface TaskOptions<
  N extends string = string,
  S extends StandardSchemaV1 | undefined = undefined,
  O extends StandardSchemaV1 | undefined = undefined,
  Stage extends string = string,
  R extends Returned<O> = Returned<O>,
> {
  /** Unique among all tasks of a deployment; letters, digits and `. _ - / :`. */
  name: N;
  description?: string;
  /** Any Standard Schema (zod, valibot, arktype, …). The handler gets its output, the store keeps what was submitted. */
  input?: S;
  /** Checked before the job is COMPLETED. */
  output?: O;
  /** JSON Schema for the API and forms, where `input` cannot give one itself. */
  inputJsonSchema?: object;
  outputJsonSchema?: object;
  /** Default `default`. */
  queue?: string;
  /** −100…100, default 0; one step outweighs ten minutes of waiting (`WAYMARK_PRIORITY_STEP`). */
  priority?: number;
  /** Attempts that may fail before the job does, the last included. Default 5. */
  maxAttempts?: number;
  /** Default: exponential from 1 s, factor 2, at most 10 min, ±20 %. */
  backoff?: BackoffOptions;
  /** Longest duration of one attempt. Default none. */
  timeout?: string | number;
  /** Longest time without progress or checkpoint. Default none. */
  stallTimeout?: string | number;
  /** Names of the stages in order: `ctx.progress({ stage })` then shows "stage 2 of 3, next: …". */
  stages?: readonly Stage[];
  /**
   * `inline` (the default) runs in the worker's own thread. `thread` runs each attempt in a thread of its own, which can
   * compute without a pause and is ended when it does not stop in time; it needs to know the task's module. On the
   * embedded database such a handler has no `ctx.transaction`, `ctx.db` and no `tx` in `ctx.batches`.
   */
  isolation?: 'inline' | 'thread';
  /**
   * `import.meta.url` of the module that exports this task, for `isolation: "thread"` where the worker is given the task
   * itself and not a tasks file. The module is loaded again in each thread: it should do nothing but define tasks.
   */
  module?: string;
  run(ctx: HandlerContext<Stage>, input: Parsed<S>): Promise<R> | R;
}

/**
 * Defines a task.
 * @throws TypeError that names the option and its rule, at once and not at the first job.
 */
export function defineTask<
  const N extends string,
  S extends StandardSchemaV1 | undefined = undefined,
  O extends StandardSchemaV1 | undefined = undefined,
  const Stage extends string = string,
  R extends Returned<O> = Returned<O>,
>(
  options: TaskOptions<N, S, O, Stage, R>,
): Task<N, Input<S>, Parsed<S>, O extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<O> : R> {
  const { name, queue = 'default', priority = 0, maxAttempts = 5, stages = [] } = options;
  if (!/^[A-Za-z0-9][\w.\-/:]*$/.test(name) || name.length > MAX_TEXT.task) {
    throw new TypeError(
      `task name must be 1–${MAX_TEXT.task} letters, digits or . _ - / :, not ${JSON.stringify(name)}`,
    );
  }
  const of = `task ${name}:`;
  if (queue.length < 1 || queue.length > MAX_TEXT.queue || textProblem(queue)) {
    throw new TypeError(`${of} queue must have 1–${MAX_TEXT.queue} characters`);
  }
  if (!Number.isInteger(priority) || priority < PRIORITY_RANGE.min || priority > PRIORITY_RANGE.max) {
    throw new TypeError(`${of} priority must be an integer from ${PRIORITY_RANGE.min} to ${PRIORITY_RANGE.max}`);
  }
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > MAX_ATTEMPTS) {
    throw new TypeError(`${of} maxAttempts must be an integer from 1 to ${MAX_ATTEMPTS}`);
  }
  if (new Set(stages).size !== stages.length) throw new TypeError(`${of} stages must be unlike each other`);
  if (typeof options.run !== 'function') throw new TypeError(`${of} run must be a function`);
  const definition: TaskDefinition = {
    name,
    description: options.description ?? null,
    stages: [...stages],
    queue,
    priority,
    inputSchema: (options.inputJsonSchema as JsonValue | undefined) ?? jsonSchemaOf(options.input, 'input'),
    outputSchema: (options.outputJsonSchema as JsonValue | undefined) ?? jsonSchemaOf(options.output, 'output'),
    maxAttempts,
    backoff: options.backoff ? parseBackoff(options.backoff) : DEFAULT_BACKOFF,
    timeoutMs: options.timeout === undefined ? null : durationMs(options.timeout, `${of} timeout`),
    stallTimeoutMs: options.stallTimeout === undefined ? null : durationMs(options.stallTimeout, `${of} stallTimeout`),
  };
  return {
    name,
    definition,
    inputSchema: options.input,
    outputSchema: options.output,
    run: options.run as never,
    isolation: options.isolation ?? 'inline',
    module: options.module === undefined ? undefined : pathOf(options.module, of),
    [TASK]: true,
  };
}

function pathOf(module: string, of: string): string {
  if (!module.startsWith('file:')) throw new TypeError(`${of} module must be a file URL, such as import.meta.url`);
  return fileURLToPath(module);
}
