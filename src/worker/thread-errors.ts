import { LeaseLost, Unavailable } from '../core/errors.ts';

/**
 * Errors on their way between threads: a copy keeps neither class nor fields, and callers tell the two below by class.
 * What a handler throws does not come this way.
 */
interface ErrorMessage {
  kind: 'unavailable' | 'lease-lost' | 'other';
  name: string;
  message: string;
  stack: string | undefined;
  code: unknown;
  jobId: string;
  attempt: number;
}

/** For the `serialize` of birpc: an answer's error becomes a message. */
export function withPlainError<M extends { e?: unknown }>(message: M): M {
  return message.e === undefined ? message : { ...message, e: toMessage(message.e) };
}

/** For its `deserialize`. */
export function withRealError<M extends { e?: unknown }>(message: M): M {
  return message.e === undefined ? message : { ...message, e: fromMessage(message.e as ErrorMessage) };
}

function toMessage(error: unknown): ErrorMessage {
  const { name = 'Error', message = String(error), stack, code } = (error ?? {}) as Partial<ErrorMessage>;
  const kind = error instanceof Unavailable ? 'unavailable' : error instanceof LeaseLost ? 'lease-lost' : 'other';
  const lost = error instanceof LeaseLost ? error : null;
  const plainCode = typeof code === 'string' ? code : undefined;
  return { kind, name, message, stack, code: plainCode, jobId: lost?.jobId ?? '', attempt: lost?.attempt ?? 0 };
}

function fromMessage({ kind, name, message, stack, code, jobId, attempt }: ErrorMessage): Error {
  if (kind === 'unavailable') return new Unavailable(message);
  if (kind === 'lease-lost') return new LeaseLost(jobId, attempt);
  const error = Object.assign(new Error(message), code === undefined ? {} : { code });
  error.name = name;
  if (stack !== undefined) error.stack = stack;
  return error;
}
