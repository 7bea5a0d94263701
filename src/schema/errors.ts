import type { ObjectRef } from '@pothos/core';
import { GraphQLError } from 'graphql';
import {
  IdempotencyConflict,
  InvalidId,
  InvalidInput,
  InvalidTransition,
  LimitExceeded,
  NotFound,
  PayloadTooLarge,
  UnknownTask,
  WaymarkError,
} from '../core/errors.ts';
import { builder } from './builder.ts';
import type { SchemaContext } from './context.ts';
import { Job } from './refs.ts';

/**
 * The one place where errors of the core become GraphQL: those that a caller must expect as members of result unions,
 * all others as top-level errors with a code. A member is an error in a wrapper: an Error that is returned as it is
 * would be taken for one that was thrown.
 */
export interface Refusal<E extends WaymarkError = WaymarkError> {
  refused: E;
}

export const UserError = builder.interfaceRef<Refusal>('UserError').implement({
  description: 'An expected failure. Nothing was changed.',
  resolveType: (value) => (value as Refusal).refused.name,
  fields: (t) => ({
    message: t.string({ description: 'For people.', resolve: ({ refused }) => refused.message }),
    code: t.string({
      description: 'For programs: stable, such as `UNKNOWN_TASK`.',
      resolve: ({ refused }) => refused.code,
    }),
    path: t.string({
      nullable: true,
      description: 'Where in a bulk or graph call it happened (`inputs[17]`, `nodes.b`), else null.',
      resolve: ({ refused }) => refused.path ?? null,
    }),
  }),
});

const InputIssue = builder.objectRef<InvalidInput['issues'][number]>('InputIssue').implement({
  description: 'One thing that is wrong with an input.',
  fields: (t) => ({
    path: t.exposeString('path', { description: 'Absolute: `input.rows[3].email`, `inputs[17].title`.' }),
    message: t.exposeString('message', { description: 'The rule that it breaks.' }),
  }),
});

const InvalidInputType = builder.objectRef<Refusal<InvalidInput>>('InvalidInput').implement({
  description: 'The input breaks rules of Waymark or the schema of its task.',
  interfaces: [UserError],
  fields: (t) => ({
    issues: t.field({
      type: [InputIssue],
      description: 'Each with its rule.',
      resolve: ({ refused }) => [...refused.issues],
    }),
  }),
});

const UnknownTaskType = builder.objectRef<Refusal<UnknownTask>>('UnknownTask').implement({
  description: 'No worker or back end has registered a task of this name.',
  interfaces: [UserError],
  fields: (t) => ({
    task: t.string({ description: 'The name that was given.', resolve: ({ refused }) => refused.task }),
    known: t.stringList({
      description: 'Names of all registered tasks.',
      resolve: ({ refused }) => [...refused.known],
    }),
  }),
});

const IdempotencyConflictType = builder.objectRef<Refusal<IdempotencyConflict>>('IdempotencyConflict').implement({
  description: 'The key was used before, with another input.',
  interfaces: [UserError],
  fields: (t) => ({
    job: t.field({
      type: Job,
      description: 'The job that the key stands for.',
      resolve: ({ refused }, _, context) => existingJob(context, refused.jobId),
    }),
    givenDigest: t.string({
      description: 'sha256 of the canonical JSON of the given input.',
      resolve: ({ refused }) => refused.givenDigest,
    }),
    storedDigest: t.string({
      description: 'The same of the job’s input.',
      resolve: ({ refused }) => refused.storedDigest,
    }),
  }),
});

const PayloadTooLargeType = builder.objectRef<Refusal<PayloadTooLarge>>('PayloadTooLarge').implement({
  description: 'An input is larger than the service takes.',
  interfaces: [UserError],
  fields: (t) => ({
    limitBytes: t.int({ description: 'Most bytes of its JSON.', resolve: ({ refused }) => refused.limitBytes }),
    actualBytes: t.int({ description: 'Bytes of what was given.', resolve: ({ refused }) => refused.actualBytes }),
  }),
});

const NotFoundType = builder.objectRef<Refusal<NotFound>>('NotFound').implement({
  description: 'Nothing of this id exists for the caller: unknown, removed, or another tenant’s.',
  interfaces: [UserError],
  fields: (t) => ({ id: t.id({ description: 'As given.', resolve: ({ refused }) => refused.id }) }),
});

const InvalidTransitionType = builder.objectRef<Refusal<InvalidTransition>>('InvalidTransition').implement({
  description: 'The job is not in a state in which this is possible.',
  interfaces: [UserError],
  fields: (t) => ({
    job: t.field({
      type: Job,
      description: 'The job as it is.',
      resolve: ({ refused }, _, context) => existingJob(context, refused.jobId),
    }),
  }),
});

async function existingJob(context: SchemaContext, id: string) {
  const job = await context.loaders.job.load(id);
  if (!job) throw new NotFound('job', id);
  return job;
}

/** A class of expected errors with its GraphQL type. */
// biome-ignore lint/suspicious/noExplicitAny: members of a union have unlike shapes
export type Member = { class: abstract new (...args: any[]) => WaymarkError; type: ObjectRef<any, any, any> };

/** Members for result unions. */
export const expected = {
  InvalidInput: { class: InvalidInput, type: InvalidInputType },
  UnknownTask: { class: UnknownTask, type: UnknownTaskType },
  IdempotencyConflict: { class: IdempotencyConflict, type: IdempotencyConflictType },
  PayloadTooLarge: { class: PayloadTooLarge, type: PayloadTooLargeType },
  NotFound: { class: NotFound, type: NotFoundType },
  InvalidTransition: { class: InvalidTransition, type: InvalidTransitionType },
} satisfies Record<string, Member>;

/**
 * Defines a result union of a payload and expected errors.
 * @returns its ref, and what runs a mutation so that exactly these errors become its value
 */
export function resultType<Payload extends object>(
  name: string,
  description: string,
  // biome-ignore lint/suspicious/noExplicitAny: Pothos's ref carries the whole builder in its first parameter
  payload: ObjectRef<any, Payload, any>,
  members: readonly (keyof typeof expected | Member)[],
) {
  const list: Member[] = members.map((m) => (typeof m === 'string' ? expected[m] : m));
  const type = builder.unionType(name, {
    description,
    types: [payload, ...list.map((m) => m.type)],
    resolveType: (value) => ('refused' in value ? (value as Refusal).refused.name : payload.name),
  });
  async function run(work: () => Promise<Payload>): Promise<Payload | Refusal> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof WaymarkError && list.some((m) => error instanceof m.class)) return { refused: error };
      throw error;
    }
  }
  // Over members of unlike shapes Pothos infers nothing; this is what `run` gives.
  return { type: type as unknown as ReturnType<typeof builder.objectRef<Payload | Refusal>>, run };
}

/** Codes of the core that clients know; any other is a defect when it gets here. */
const PUBLIC_CODES: Readonly<Record<string, string>> = {
  BAD_USER_INPUT: 'BAD_USER_INPUT',
  // Expected ones, from a field whose union has no member for them.
  INVALID_INPUT: 'BAD_USER_INPUT',
  PAYLOAD_TOO_LARGE: 'BAD_USER_INPUT',
  UNKNOWN_TASK: 'BAD_USER_INPUT',
  NOT_FOUND: 'NOT_FOUND',
  CURSOR_INVALID: 'CURSOR_INVALID',
  LIMIT_EXCEEDED: 'LIMIT_EXCEEDED',
  UNAVAILABLE: 'UNAVAILABLE',
};

/**
 * The top-level error of what a resolver or a stream threw: a code for programs, and what the kind of error adds.
 * Null: it is a defect, and its text is nobody's business outside.
 */
export function toGraphQLError(error: unknown): GraphQLError | null {
  if (!(error instanceof WaymarkError)) return null;
  const code = PUBLIC_CODES[error.code];
  if (code === undefined) return null;
  const extensions: Record<string, unknown> = { code };
  if (error instanceof InvalidId && error.path !== undefined) {
    return new GraphQLError(`${error.path}: ${error.message}`, { extensions: { code, argument: error.path } });
  }
  if (error instanceof InvalidInput) extensions.issues = error.issues;
  if (error instanceof NotFound) extensions.id = error.id;
  if (error instanceof LimitExceeded) {
    Object.assign(extensions, { limit: error.limit, retryAfterMs: error.retryAfterMs });
  }
  return new GraphQLError(error.message, { extensions });
}
