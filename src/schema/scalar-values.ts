import { GraphQLError, Kind, type ValueNode } from 'graphql';
import { DURATION_RULE, formatDuration, parseDuration } from '../core/duration.ts';
import { toIso } from '../core/job.ts';
import { memberPath } from '../core/json.ts';

/** What scalars accept and give, as plain functions. Refusals carry BAD_USER_INPUT wherever they happen. */
function refuse(message: string): never {
  throw new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT' } });
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

const DATE_TIME = /^(\d{4})-(\d\d)-(\d\d)t(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:z|[+-](\d\d):(\d\d))$/i;
const DATE_TIME_RULE = 'must be an RFC 3339 date and time with a zone, such as "2026-11-29T16:02:52.123Z"';
const FIRST_INSTANT = Date.parse('0001-01-01T00:00:00Z');
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z');

/** RFC 3339 with any zone → the same instant in UTC with milliseconds. */
export function parseDateTime(value: unknown): string {
  const match = typeof value === 'string' ? DATE_TIME.exec(value) : null;
  if (!match || !isRealMoment(match)) return refuse(`DateTime ${DATE_TIME_RULE}, not ${shown(value)}`);
  const instant = Date.parse((value as string).toUpperCase());
  if (!(instant >= FIRST_INSTANT && instant <= LAST_INSTANT)) {
    return refuse(`DateTime must be in the years 1 to 9999 (UTC), not ${shown(value)}`);
  }
  return new Date(instant).toISOString();
}

/** Date.parse rolls 30 February over into March; here it is refused. */
function isRealMoment(match: RegExpExecArray): boolean {
  const [year, month, day, hour, minute, second, zoneHour, zoneMinute] = match.slice(1).map((n) => Number(n ?? 0));
  const days = new Date(0);
  days.setUTCFullYear(year ?? 0, month ?? 0, 0);
  const inRange = (n: number | undefined, min: number, max: number) => n !== undefined && n >= min && n <= max;
  return (
    inRange(month, 1, 12) &&
    inRange(day, 1, days.getUTCDate()) &&
    inRange(hour, 0, 23) &&
    inRange(minute, 0, 59) &&
    inRange(second, 0, 59) &&
    inRange(zoneHour, 0, 23) &&
    inRange(zoneMinute, 0, 59)
  );
}

/** A stored moment (or an RFC 3339 one) → RFC 3339 in UTC with milliseconds. */
export function serializeDateTime(value: unknown): string {
  return toIso(value instanceof Date ? value.toISOString() : String(value));
}

/** `"5s"` → milliseconds. */
export function parseDurationValue(value: unknown): number {
  const ms = typeof value === 'string' ? parseDuration(value) : null;
  return ms ?? refuse(`Duration ${DURATION_RULE}, not ${shown(value)}`);
}

/** Milliseconds → `"5s"`. */
export function serializeDuration(value: unknown): string {
  return formatDuration(Number(value));
}

/** A value written in the document, for scalars that are strings; what is no string is passed on to be refused. */
export function stringLiteral(node: ValueNode): unknown {
  if (node.kind === Kind.STRING || node.kind === Kind.BOOLEAN) return node.value;
  return node.kind === Kind.INT || node.kind === Kind.FLOAT ? Number(node.value) : node.kind;
}

/**
 * A JSON value written in the document. Plain objects come out, unlike what graphql-js makes (objects without a
 * prototype crash code that asks for their constructor).
 */
export function jsonLiteral(node: ValueNode, variables: Record<string, unknown> | null | undefined): unknown {
  return literal(node, variables, 'value');
}

/**
 * Whether an integer comes back as it was written. Most beyond 2^53 do not: a double has no room for their digits. Those
 * that a program printed from a double do.
 */
export function keepsItsDigits(text: string): boolean {
  const number = Number(text);
  return Number.isSafeInteger(number) || String(number) === text;
}

function literal(node: ValueNode, variables: Record<string, unknown> | null | undefined, path: string): unknown {
  switch (node.kind) {
    case Kind.STRING:
    case Kind.BOOLEAN:
      return node.value;
    case Kind.NULL:
      return null;
    case Kind.INT:
      if (keepsItsDigits(node.value)) return Number(node.value);
      return refuse(`JSON ${path}: ${node.value} is beyond 2^53 and would change; send it as a string`);
    case Kind.FLOAT: {
      const number = Number(node.value);
      if (Number.isFinite(number)) return number;
      return refuse(`JSON ${path}: ${node.value} is beyond the range of a double`);
    }
    case Kind.ENUM:
      return refuse(`JSON ${path}: ${node.value} is no JSON value; put a string in quotes`);
    case Kind.VARIABLE:
      // While a document is validated, variables have no values yet.
      return variables?.[node.name.value] ?? null;
    case Kind.LIST:
      return node.values.map((item, i) => literal(item, variables, `${path}[${i}]`));
    case Kind.OBJECT:
      // fromEntries, not assignment: a field called __proto__ stays a field.
      return Object.fromEntries(
        node.fields
          .filter((f) => !isAbsent(f.value, variables))
          .map((f) => [f.name.value, literal(f.value, variables, memberPath(path, f.name.value))]),
      );
  }
}

function isAbsent(node: ValueNode, variables: Record<string, unknown> | null | undefined): boolean {
  return node.kind === Kind.VARIABLE && variables != null && variables[node.name.value] === undefined;
}
