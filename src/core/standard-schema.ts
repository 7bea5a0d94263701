import type { InputIssue } from './errors.ts';
import { type JsonValue, memberPath } from './json.ts';

/**
 * The part of the Standard Schema interface (https://standardschema.dev, version 1) that Waymark uses. Any library
 * that implements it can check the input and output of tasks.
 */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export declare namespace StandardSchemaV1 {
  export type InferInput<S extends StandardSchemaV1> = NonNullable<S['~standard']['types']>['input'];
  export type InferOutput<S extends StandardSchemaV1> = NonNullable<S['~standard']['types']>['output'];
}

/** Checks a value; issues carry absolute paths that begin with `path`. */
export async function validateWith<O>(
  schema: StandardSchemaV1<unknown, O>,
  value: unknown,
  path: string,
): Promise<{ ok: true; value: O } | { ok: false; issues: InputIssue[] }> {
  const result = await schema['~standard'].validate(value);
  if (!result.issues) return { ok: true, value: result.value };
  return {
    ok: false,
    issues: result.issues.map((issue) => ({
      path: (issue.path ?? []).reduce<string>((at, segment) => {
        const key = typeof segment === 'object' ? segment.key : segment;
        return memberPath(at, typeof key === 'number' ? key : String(key));
      }, path),
      message: issue.message,
    })),
  };
}

/**
 * JSON Schema (draft 2020-12) of a schema's input or output, where its library gives one by the Standard JSON Schema
 * extension (`~standard.jsonSchema`); null where it does not, or the schema has no JSON form (a Date, a BigInt).
 */
export function jsonSchemaOf(schema: StandardSchemaV1 | undefined, side: 'input' | 'output'): JsonValue {
  const extension = (
    schema?.['~standard'] as { jsonSchema?: Record<string, (o: { target: string }) => unknown> } | undefined
  )?.jsonSchema;
  if (!extension) return null;
  try {
    return JSON.parse(JSON.stringify(extension[side]?.({ target: 'draft-2020-12' }) ?? null)) as JsonValue;
  } catch {
    return null;
  }
}
