import type { JobErrorData } from '../core/event.ts';
import { isNonRetryable } from '../core/handler-errors.ts';
import { storableText } from '../core/json.ts';

/** Longest texts of a recorded error, in UTF-16 units; longer ones are cut. */
export const MAX_ERROR_TEXT = { code: 100, message: 2_000, stack: 8_000 } as const;

/** Codes that Waymark itself gives to the end of an attempt. */
export type OwnErrorCode =
  | 'TIMEOUT'
  | 'ABORTED'
  | 'INVALID_INPUT'
  | 'INVALID_OUTPUT'
  | 'RESULT_NOT_JSON'
  | 'RESULT_TOO_LARGE';

const MAX_CAUSES = 3;
const MAX_INNER = 5;

/**
 * What is recorded of whatever a handler threw: a string, undefined, a proxy, an error with a message of 5 MB. Never
 * throws, always storable, cut to MAX_ERROR_TEXT. The code is the thrown `code` when that is a text, else its name.
 */
export function errorRecord(thrown: unknown, attempt: number, at: Date): JobErrorData {
  const message = messageOf(thrown);
  return {
    code: storableText(codeOf(thrown), MAX_ERROR_TEXT.code),
    message: storableText(message, MAX_ERROR_TEXT.message),
    retryable: !hasBrand(isNonRetryable, thrown),
    stack: stackOf(thrown),
    attempt,
    at: at.toISOString(),
  };
}

/** A failure that Waymark finds itself. */
export function ownErrorRecord(code: OwnErrorCode, message: string, attempt: number, at: Date): JobErrorData {
  const retryable = code === 'TIMEOUT' || code === 'ABORTED';
  return {
    code,
    message: storableText(message, MAX_ERROR_TEXT.message),
    retryable,
    stack: null,
    attempt,
    at: at.toISOString(),
  };
}

/** One line about whatever was thrown, at most `maxLength` long. Never throws. */
export function errorText(thrown: unknown, maxLength: number): string {
  return storableText(messageOf(thrown), maxLength);
}

/** Whether a thrown value is one of Waymark's own; a proxy may throw when it is asked, and is none. */
export function hasBrand<T>(test: (value: unknown) => value is T, value: unknown): value is T {
  return safely(() => test(value), false);
}

function codeOf(thrown: unknown): string {
  const code = textMember(thrown, 'code');
  return code ?? textMember(thrown, 'name') ?? 'Error';
}

function messageOf(thrown: unknown): string {
  if (!isObject(thrown)) return primitiveText(thrown);
  const message = safely(() => {
    const value = (thrown as { message?: unknown }).message;
    return typeof value === 'string' ? value : null;
  }, null);
  if (message === null) return objectText(thrown);
  const inner = safely(() => innerMessages(thrown), []);
  return inner.length > 0 ? `${message || 'several errors'} (${inner.join('; ')})` : message;
}

function innerMessages(thrown: object): string[] {
  const errors = (thrown as { errors?: unknown }).errors;
  if (!(thrown instanceof AggregateError) || !Array.isArray(errors)) return [];
  const shown = errors
    .slice(0, MAX_INNER)
    .map((error: unknown) => (error === thrown ? 'itself' : firstLine(shallowMessage(error))));
  return errors.length > MAX_INNER ? [...shown, `and ${errors.length - MAX_INNER} more`] : shown;
}

function shallowMessage(thrown: unknown): string {
  if (!isObject(thrown)) return primitiveText(thrown);
  return textMember(thrown, 'message') ?? objectText(thrown);
}

/** The frames, below a header that is cut: a message of megabytes must not push them out. Causes follow. */
function stackOf(thrown: unknown): string | null {
  const parts: string[] = [];
  let current: unknown = thrown;
  for (let depth = 0; depth <= MAX_CAUSES && isObject(current); depth++) {
    const stack = textMember(current, 'stack');
    if (stack !== null) parts.push(depth === 0 ? shortStack(stack) : `caused by: ${shortStack(stack)}`);
    const from: object = current;
    current = safely(() => (from as { cause?: unknown }).cause, undefined);
    if (current === from) break;
  }
  return parts.length > 0 ? storableText(parts.join('\n'), MAX_ERROR_TEXT.stack) : null;
}

function shortStack(stack: string): string {
  const frames = stack.indexOf('\n    at ');
  if (frames < 0) return stack.slice(0, MAX_ERROR_TEXT.message);
  return `${stack.slice(0, Math.min(frames, 500))}${stack.slice(frames, frames + MAX_ERROR_TEXT.stack)}`;
}

/** Own members, one level deep: enough to recognise `{ status: 500, url: … }`, and bounded whatever it holds. */
function objectText(thrown: object): string {
  return safely(
    () => {
      const keys = Object.keys(thrown);
      const shown = keys.slice(0, 10).map((key) => `${key.slice(0, 40)}: ${memberText(thrown, key)}`);
      const more = keys.length > 10 ? [`${keys.length - 10} more`] : [];
      return `a thrown ${typeof thrown} { ${[...shown, ...more].join(', ')} }`;
    },
    `a thrown ${typeof thrown} that cannot be read`,
  );
}

function memberText(thrown: object, key: string): string {
  const value = safely(() => (thrown as Record<string, unknown>)[key], '(unreadable)');
  return isObject(value) ? `[${typeof value}]` : firstLine(primitiveText(value));
}

function primitiveText(value: unknown): string {
  return typeof value === 'string' ? value : String(value);
}

function firstLine(text: string): string {
  return text.slice(0, 200);
}

/** A member that is a text with something in it, else null. */
function textMember(value: unknown, key: string): string | null {
  if (!isObject(value)) return null;
  return safely(() => {
    const member = (value as Record<string, unknown>)[key];
    return typeof member === 'string' && member.trim() !== '' ? member : null;
  }, null);
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

function safely<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
