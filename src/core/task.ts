import type { Backoff } from './backoff.ts';
import { type JsonValue, jsonDigest } from './json.ts';
import type { StandardSchemaV1 } from './standard-schema.ts';

/** A defined task: pass it to a worker, or to `submit`. */
export interface Task<N extends string = string, I = unknown, P = unknown, R = unknown> {
  readonly name: N;
  readonly definition: TaskDefinition;
  readonly inputSchema: StandardSchemaV1 | undefined;
  readonly outputSchema: StandardSchemaV1 | undefined;
  readonly run: (ctx: never, input: P) => Promise<R> | R;
  readonly isolation: 'inline' | 'thread';
  /** Path of the module that exports it, when its definition says so. */
  readonly module: string | undefined;
  readonly [TASK]: true;
  /** Type only: what `submit` takes. */
  readonly '~input'?: I;
}

// biome-ignore lint/suspicious/noExplicitAny: a list of tasks holds handlers of unlike inputs, which only `any` admits
export type AnyTask = Task<string, any, any, any>;
export type InputOf<T> = T extends { '~input'?: infer I } ? I : never;
export type ResultOf<T> = T extends { run: (...args: never[]) => infer R } ? Awaited<R> : never;
export type NameOf<T> = T extends { name: infer N } ? N : never;

/** `(input)`, or `(input?)` where the task can do without: it says so, or has no schema at all (any JSON value). */
export type SubmitArgs<I, O> = undefined extends I
  ? [input?: I, options?: O]
  : JsonValue extends I
    ? [input?: I, options?: O]
    : [input: I, options?: O];

/** What the database keeps of a task, so that an API without its code knows it. JSON. */
export interface TaskDefinition {
  name: string;
  description: string | null;
  stages: string[];
  queue: string;
  priority: number;
  inputSchema: JsonValue;
  outputSchema: JsonValue;
  maxAttempts: number;
  backoff: Backoff;
  timeoutMs: number | null;
  stallTimeoutMs: number | null;
}

export const TASK = Symbol.for('waymark.task');

/** Whether a value was made by `defineTask` (of any copy of the package). */
export function isTask(value: unknown): value is AnyTask {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[TASK] === true;
}

const digests = new WeakMap<TaskDefinition, string>();

/** Changes whenever anything the database keeps of a task changes. A definition is not changed once it is made. */
export function definitionDigest(definition: TaskDefinition): string {
  let digest = digests.get(definition);
  if (digest === undefined) {
    digest = jsonDigest(definition);
    digests.set(definition, digest);
  }
  return digest;
}
