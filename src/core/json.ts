import crypto from 'node:crypto';
import canonicalizeModule from 'canonicalize';
import type { InputIssue } from './errors.ts';

// The package is CommonJS and its types describe an ES default export; at run time the import is the function itself.
const canonicalize = canonicalizeModule as unknown as (value: unknown) => string | undefined;

/** Any JSON value (RFC 8259; numbers are IEEE doubles). */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

/** What is left of `T` after a round trip through JSON: a Date becomes a string, a function vanishes. */
export type Jsonify<T> = T extends { toJSON(): infer R }
  ? Jsonify<R>
  : T extends string | number | boolean | null
    ? T
    : T extends undefined | ((...args: never[]) => unknown) | symbol
      ? null
      : T extends readonly unknown[]
        ? { [K in keyof T]: Jsonify<T[K]> }
        : T extends object
          ? { [K in keyof T as T[K] extends ((...args: never[]) => unknown) | symbol ? never : K]: Jsonify<T[K]> }
          : unknown;

/** Deeper nesting than this is refused: a parser of a client somewhere would overflow on it. */
export const MAX_JSON_DEPTH = 200;

/** Bytes of a JSON text in UTF-8. */
export function jsonBytes(text: string): number {
  return Buffer.byteLength(text, 'utf8');
}

/** In one call where Node has one (20.12 and later). */
const sha256: (text: string) => string =
  typeof crypto.hash === 'function'
    ? (text) => crypto.hash('sha256', text, 'hex')
    : (text) => crypto.createHash('sha256').update(text).digest('hex');

/** sha256 (hex) of a value's canonical JSON (RFC 8785). `undefined` counts as null. */
export function jsonDigest(value: unknown): string {
  return sha256(canonicalize(value ?? null) ?? 'null');
}

/** The rule a string breaks, or null: Postgres text holds neither NUL nor half a surrogate pair. */
export function textProblem(text: string): string | null {
  if (text.includes('\u0000')) return 'must not contain the NUL character (U+0000)';
  if (!text.isWellFormed()) return 'must not contain a lone surrogate (half of a UTF-16 pair)';
  return null;
}

/** `text` with what Postgres cannot hold replaced by U+FFFD, cut to `maxLength` UTF-16 units. */
export function storableText(text: string, maxLength: number): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;
  return cut.replaceAll('\u0000', '\uFFFD').toWellFormed();
}

/**
 * What keeps a value from being stored as JSON exactly as it is: each problem with its path.
 * Unlike JSON.stringify it refuses what would silently change (undefined in a list, NaN, a Date, a Map, a function).
 * @param path the name of the value itself, such as `input`
 */
export function jsonIssues(value: unknown, path: string): InputIssue[] {
  const issues: InputIssue[] = [];
  const open = new Set<object>();
  visit(value, path, 0);
  return issues;

  function visit(v: unknown, at: string, depth: number): void {
    if (issues.length >= 20) return;
    const problem = typeof v === 'object' && v !== null ? objectProblem(v, depth) : scalarProblem(v);
    if (problem) issues.push({ path: at, message: problem });
    if (problem || typeof v !== 'object' || v === null) return;
    open.add(v);
    if (Array.isArray(v)) {
      for (let i = 0; i < v.length; i++) visit(v[i], `${at}[${i}]`, depth + 1);
    } else {
      for (const [key, child] of Object.entries(v)) {
        const nameProblem = textProblem(key);
        if (nameProblem) issues.push({ path: memberPath(at, key), message: `the name ${nameProblem}` });
        if (child !== undefined) visit(child, memberPath(at, key), depth + 1);
      }
    }
    open.delete(v);
  }

  function objectProblem(v: object, depth: number): string | null {
    if (depth >= MAX_JSON_DEPTH) return `is nested deeper than ${MAX_JSON_DEPTH} levels`;
    if (open.has(v)) return 'refers to itself';
    if (Array.isArray(v)) return null;
    const proto = Object.getPrototypeOf(v) as object | null;
    // A plain object of another realm has a prototype of its own, whose prototype is null.
    const plain = proto === null || Object.getPrototypeOf(proto) === null;
    return plain ? null : `must be a plain object, not a ${v.constructor?.name ?? 'class instance'}`;
  }
}

function scalarProblem(v: unknown): string | null {
  switch (typeof v) {
    case 'string':
      return textProblem(v);
    case 'number':
      return Number.isFinite(v) ? null : `must be a finite number, not ${v}`;
    case 'bigint':
      return 'must not be a BigInt; send integers beyond 2^53 as strings';
    case 'boolean':
    case 'object':
      return null;
    default:
      return `must be a JSON value, not ${typeof v}`;
  }
}

/** `a.b`, or `a["odd name"]` where the name is no identifier. */
export function memberPath(base: string, key: string | number): string {
  if (typeof key === 'number') return `${base}[${key}]`;
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${base}.${key}` : `${base}[${JSON.stringify(storableText(key, 80))}]`;
}
