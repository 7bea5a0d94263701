import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { InputIssue } from '../core/errors.ts';
import { type JsonValue, memberPath } from '../core/json.ts';

const MAX_CACHED = 500;
const MAX_ISSUES = 50;

/** Checks values against JSON Schemas (draft 2020-12) as registered by workers. */
export interface JsonSchemaChecker {
  /** What is wrong with `value`, with absolute paths that begin with `path`. A schema that cannot be compiled checks nothing. */
  issues(schema: JsonValue, value: unknown, path: string): InputIssue[];
}

/** Compiled schemas are kept, the least recently used dropped. */
export function createJsonSchemaChecker(): JsonSchemaChecker {
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateSchema: false, addUsedSchema: false });
  (formats as unknown as { default: (a: Ajv2020) => void }).default(ajv);
  const compiled = new Map<string, ValidateFunction | null>();

  function compile(schema: JsonValue): ValidateFunction | null {
    const key = JSON.stringify(schema);
    let validate = compiled.get(key);
    if (validate === undefined) {
      try {
        validate = ajv.compile(schema as object);
      } catch {
        validate = null;
      }
    }
    compiled.delete(key);
    compiled.set(key, validate);
    if (compiled.size > MAX_CACHED) compiled.delete(compiled.keys().next().value as string);
    return validate;
  }

  return {
    issues(schema, value, path) {
      if (schema === null || typeof schema !== 'object') return [];
      const validate = compile(schema);
      if (!validate || validate(value)) return [];
      return (validate.errors ?? []).slice(0, MAX_ISSUES).map((e) => toIssue(e, path));
    },
  };
}

function toIssue(error: ErrorObject, path: string): InputIssue {
  const segments = error.instancePath
    .split('/')
    .slice(1)
    .map((s) => s.replaceAll('~1', '/').replaceAll('~0', '~'));
  const missing = (error.params as { missingProperty?: string }).missingProperty;
  const extra = (error.params as { additionalProperty?: string }).additionalProperty;
  if (missing !== undefined) segments.push(missing);
  if (extra !== undefined) segments.push(extra);
  const at = segments.reduce((base, s) => memberPath(base, /^\d+$/.test(s) ? Number(s) : s), path);
  const allowed = (error.params as { allowedValues?: unknown[] }).allowedValues;
  const message =
    missing !== undefined
      ? 'is required'
      : extra !== undefined
        ? 'is not a known field'
        : `${error.message ?? 'is invalid'}${allowed ? `: ${allowed.map((v) => JSON.stringify(v)).join(', ')}` : ''}`;
  return { path: at, message };
}
