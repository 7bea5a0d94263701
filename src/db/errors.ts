import { Unavailable, WaymarkError } from '../core/errors.ts';

/** What a failed statement carries, whichever driver ran it. */
export interface DatabaseErrorFields {
  code?: string;
  message?: string;
  detail?: string;
  hint?: string;
  /** postgres.js says `constraint_name`, PGlite and node-postgres `constraint`. */
  constraint_name?: string;
  constraint?: string;
  /** Of an error of the operating system. */
  syscall?: string;
}

/** Errors wrap each other (Drizzle keeps the driver's as `cause`); deeper than this nobody nests them. */
const MAX_DEPTH = 6;

function* chain(error: unknown): Generator<DatabaseErrorFields> {
  let at: unknown = error;
  for (let depth = 0; depth < MAX_DEPTH && typeof at === 'object' && at !== null; depth++) {
    yield at as DatabaseErrorFields;
    at = (at as { cause?: unknown }).cause;
  }
}

/** The SQLSTATE of an error or of what it wraps; undefined when no database spoke. */
export function sqlState(error: unknown): string | undefined {
  for (const { code } of chain(error)) {
    if (typeof code === 'string' && /^([0-9][0-9A-Z]|F0|HV|P0|XX)[0-9A-Z]{3}$/.test(code)) return code;
  }
  return undefined;
}

/** True for 23505; with `constraint`, only for that one. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  for (const link of chain(error)) {
    if (link.code !== '23505') continue;
    return constraint === undefined || (link.constraint_name ?? link.constraint) === constraint;
  }
  return false;
}

/** A deadlock or a serialization failure: the same transaction may succeed when it is run again. */
export function isRetryable(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40P01' || state === '40001';
}

/**
 * A prepared statement whose table got other columns (by a migration of a newer program). The driver prepares it anew
 * the next time; inside a transaction that is the next run.
 */
export function isStalePlan(error: unknown): boolean {
  for (const { code, message } of chain(error)) {
    if (code === '0A000' && message?.includes('cached plan')) return true;
  }
  return false;
}

/** A connection that was there is there no more. */
const CUT_CODES: ReadonlySet<string> = new Set([
  ...['ECONNRESET', 'EPIPE', 'CONNECTION_CLOSED', 'CONNECTION_ENDED', 'CONNECTION_DESTROYED'],
  // The server ended the session: it stops, somebody said so, or it was idle.
  ...['57P01', '57P05'],
]);

const CONNECTION_CODES: ReadonlySet<string> = new Set([
  ...CUT_CODES,
  ...['ECONNREFUSED', 'ECONNABORTED', 'ETIMEDOUT', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH'],
  ...['ENETDOWN', 'ENOTFOUND', 'EAI_AGAIN', 'ERR_SOCKET_CLOSED', 'ERR_STREAM_DESTROYED', 'CONNECT_TIMEOUT'],
  // The server crashed, starts, or ends a transaction that idles; it has no connection to spare.
  ...['57P02', '57P03', '25P03', '53300'],
]);

/** The store could not be reached, or ended the connection; whether a statement took effect is unknown. */
export function isConnectionError(error: unknown): boolean {
  for (const { code, syscall } of chain(error)) {
    if (code === 'ENOENT' && syscall === 'connect') return true;
    if (typeof code === 'string' && (CONNECTION_CODES.has(code) || /^08[0-9A-Z]{3}$/.test(code))) return true;
  }
  return false;
}

/** The connection was there and was lost before the answer: another one may be had at once. */
export function isCut(error: unknown): boolean {
  for (const { code } of chain(error)) if (typeof code === 'string' && CUT_CODES.has(code)) return true;
  return false;
}

/**
 * What a statement's failure is thrown as: `Unavailable` (the driver's error as its `cause`) when the store is away or
 * took too long; everything else as it is.
 */
export function asThrown(error: unknown): unknown {
  if (error instanceof WaymarkError) return error;
  if (isConnectionError(error)) return new Unavailable(undefined, { cause: error });
  if (sqlState(error) === '57014') {
    return new Unavailable('the store did not answer in time and the statement was stopped; try again', {
      cause: error,
    });
  }
  return error;
}
