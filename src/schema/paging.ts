import { GraphQLError } from 'graphql';

/** Arguments of a connection as the client gave them. */
export interface PageArgs {
  first?: number | null;
  last?: number | null;
  after?: string | null;
  before?: string | null;
}

/** Checked arguments: which end of the window to read from, and how much. Cursors are still opaque. */
export interface PageRequest {
  limit: number;
  fromEnd: boolean;
  after: string | null;
  before: string | null;
}

/** A value that breaks a rule: a top-level error, since the document or its variables are to be corrected. */
export function badInput(argument: string, message: string): GraphQLError {
  return new GraphQLError(`${argument}: ${message}`, { extensions: { code: 'BAD_USER_INPUT', argument } });
}

/**
 * Checks `first`, `last` and their default.
 * @throws BAD_USER_INPUT that names the argument and its rule
 */
export function readPageArgs(args: PageArgs, size: { default: number; max: number }): PageRequest {
  for (const name of ['first', 'last'] as const) {
    const value = args[name];
    if (value != null && (value < 0 || value > size.max)) {
      throw badInput(name, `must be from 0 to ${size.max}, not ${value}`);
    }
  }
  if (args.first != null && args.last != null) throw badInput('last', 'must not be given together with first');
  return {
    limit: args.first ?? args.last ?? size.default,
    fromEnd: args.last != null,
    after: args.after ?? null,
    before: args.before ?? null,
  };
}

/** A cursor: opaque to clients, but readable to whoever debugs one. */
export function encodeCursor(place: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/** What `encodeCursor` was given, or null when the text is no cursor. Whoever reads it checks each part. */
export function decodeCursor(cursor: string): unknown[] | null {
  if (cursor.length > 500 || !/^[\w-]+$/.test(cursor)) return null;
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    return Array.isArray(place) ? place : null;
  } catch {
    return null;
  }
}

/** The error of a cursor that is none, or belongs to another list. */
export function badCursor(argument: 'after' | 'before'): GraphQLError {
  return badInput(argument, 'is not a cursor of this list; pass on a cursor as it was given');
}

const MOMENT = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00$/;
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/;

/** Whether a value is a moment as Postgres prints it, and one that it can read again. */
export function isMoment(value: unknown): value is string {
  if (typeof value !== 'string' || !MOMENT.test(value)) return false;
  const iso = `${value.slice(0, 10)}T${value.slice(11, 19)}`;
  const instant = Date.parse(`${iso}Z`);
  return !Number.isNaN(instant) && new Date(instant).toISOString().startsWith(iso);
}

/** Whether a value is a stored id. */
export function isStoredId(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value);
}
