import { RequestError } from './errors.ts';

/** An error as GraphQL sends it. */
export interface GraphQLFault {
  message: string;
  extensions?: Record<string, unknown>;
}

/** The data of an HTTP answer. @throws RequestError */
export function readAnswer(url: string, status: number, text: string): Record<string, unknown> {
  const body = parseResult(text);
  if (body?.errors?.length) throw graphqlError(body.errors);
  if (body?.data) return body.data;
  // A proxy in front of a service that restarts answers like this.
  if (status === 502 || status === 503 || status === 504)
    throw new RequestError('UNAVAILABLE', `${url} answered ${status}`);
  throw new RequestError('BAD_RESPONSE', `${url} answered ${status} with something that is no GraphQL result`);
}

/** What the service said is wrong in an answer that should have been a stream; null when the answer is not the service's. */
export function refusalIn(text: string): RequestError | null {
  const errors = parseResult(text)?.errors;
  return Array.isArray(errors) && errors.length > 0 ? graphqlError(errors) : null;
}

function parseResult(text: string): { data?: Record<string, unknown> | null; errors?: GraphQLFault[] } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What the service said is wrong. */
export function graphqlError(errors: readonly GraphQLFault[]): RequestError {
  const [first] = errors;
  const { code, ...details } = first?.extensions ?? {};
  const message = errors.map((e) => e.message).join('; ') || 'the service gave an error without a message';
  return new RequestError(typeof code === 'string' ? code : 'BAD_REQUEST', message, { details });
}

/** From the socket: a list of GraphQL errors, a close event, or an error of the runtime. */
export function streamError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  if (Array.isArray(error)) return graphqlError(error);
  const { code, reason } = error as { code?: unknown; reason?: unknown };
  if (typeof code === 'number') {
    // 4500: the service failed inside; the socket is lost, the job is not.
    const message = `the live connection was closed: ${code} ${reason || ''}`.trim();
    const name = code === 4500 ? 'UNAVAILABLE' : code === 4403 ? 'UNAUTHENTICATED' : 'CONNECTION_CLOSED';
    return new RequestError(name, message, {
      details: { closeCode: code },
    });
  }
  return new RequestError('UNREACHABLE', `the live connection failed: ${reasonOf(error)}`, { cause: error });
}

/** The most telling words of a network error. */
export function reasonOf(error: unknown): string {
  const { message, cause, code } = (error ?? {}) as {
    message?: string;
    cause?: { code?: string; message?: string };
    code?: string;
  };
  return cause?.code ?? cause?.message ?? code ?? message ?? String(error);
}
