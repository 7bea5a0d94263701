import { createGraphQLError } from 'graphql-yoga';
import { WaymarkError } from '../core/errors.ts';
import type { Logger } from '../core/log.ts';
import { toGraphQLError } from '../schema/errors.ts';

/** graphql-js's class, by way of yoga. */
export type GraphQLError = ReturnType<typeof createGraphQLError>;

/**
 * What leaves the process when something fails: errors of the core with their codes, errors about the request as they
 * are, and of everything else only that it happened; that is logged.
 */
export function createMask(log: Logger, options: { suggestions: boolean }): (error: unknown) => GraphQLError {
  const mask = maskBy(log);
  return options.suggestions ? mask : (error) => withoutSuggestion(mask(error));
}

function maskBy(log: Logger): (error: unknown) => GraphQLError {
  return (error) => {
    const at = isGraphQLError(error) ? { nodes: error.nodes, path: error.path } : {};
    const cause = rootOf(error);
    const known = toGraphQLError(cause);
    if (known) return createGraphQLError(known.message, { ...at, extensions: known.extensions });
    if (isGraphQLError(cause)) {
      const { code } = { ...cause.extensions, ...(error as GraphQLError).extensions };
      if (code) return error as GraphQLError;
      const extensions = { ...(error as GraphQLError).extensions, code: codeOf(cause) };
      return createGraphQLError((error as GraphQLError).message, {
        ...at,
        source: (error as GraphQLError).source,
        positions: (error as GraphQLError).positions,
        extensions,
      });
    }
    if (cause instanceof RangeError && cause.message.includes('call stack')) {
      // The parser follows nested lists and objects of a document by calling itself.
      return createGraphQLError('the operation is nested too deeply', { extensions: { code: 'QUERY_TOO_COMPLEX' } });
    }
    log.error({ err: cause, path: at.path }, 'a request failed unexpectedly');
    return createGraphQLError('Unexpected error.', { ...at, extensions: { code: 'INTERNAL_SERVER_ERROR' } });
  };
}

function codeOf(error: GraphQLError): string {
  return error.message.startsWith('Syntax Error') ? 'GRAPHQL_PARSE_FAILED' : 'BAD_USER_INPUT';
}

/** The same error without what is meant for HTTP only. */
export function withoutInternals(error: GraphQLError): GraphQLError {
  if (!('http' in error.extensions || 'unexpected' in error.extensions)) return error;
  const { http: _http, unexpected: _unexpected, ...extensions } = error.extensions;
  return createGraphQLError(error.message, {
    nodes: error.nodes,
    source: error.source,
    positions: error.positions,
    path: error.path,
    extensions,
  });
}

/** The same error without "Did you mean …?". */
export function withoutSuggestion(error: GraphQLError): GraphQLError {
  const message = error.message.replace(/ Did you mean .*\?$/s, '');
  if (message === error.message) return error;
  return createGraphQLError(message, {
    nodes: error.nodes,
    source: error.source,
    positions: error.positions,
    path: error.path,
    extensions: error.extensions,
  });
}

function isGraphQLError(error: unknown): error is GraphQLError {
  return error instanceof Error && error.name === 'GraphQLError';
}

/** What was thrown at first: GraphQL wraps it to say where. */
function rootOf(error: unknown): unknown {
  let at = error;
  while (isGraphQLError(at) && at.originalError && !(at instanceof WaymarkError)) at = at.originalError;
  return at;
}
