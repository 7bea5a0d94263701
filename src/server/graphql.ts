import { maxAliasesPlugin } from '@escape.tech/graphql-armor-max-aliases';
import { maxDepthPlugin } from '@escape.tech/graphql-armor-max-depth';
import { maxDirectivesPlugin } from '@escape.tech/graphql-armor-max-directives';
import { maxTokensPlugin } from '@escape.tech/graphql-armor-max-tokens';
import {
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
} from 'graphql';
import { createYoga, isAsyncIterable } from 'graphql-yoga';
import { CALLER_RULE } from '../core/actor.ts';
import type { Logger } from '../core/log.ts';
import { AttendedReads } from '../schema/attended-reads.ts';
import { createContext, type SchemaContext, type SchemaDeps, type Viewer } from '../schema/context.ts';
import { schema } from '../schema/index.ts';
import { DEFAULT_LIMITS, type OperationLimits, sizeProblem, tooComplex } from '../schema/limits.ts';
import { located, openValues, SharedResults } from '../schema/shared-results.ts';
import { ACTOR_HEADER, viewerOf } from './actor.ts';
import { documentCaches } from './document-cache.ts';
import { graphiqlOptions, renderGraphiQL } from './graphiql.ts';
import { createMask, withoutInternals } from './masking.ts';
import { useClosedSchema, useOperationSize, usePostedJson, useQueryCancellation } from './plugins.ts';
import { ResultStream } from './result-stream.ts';
import { useSharedResults } from './shared-results.ts';

/** What a request may be; documented in the README. */
export interface DocumentLimits extends OperationLimits {
  /** Tokens of a document, checked before it is parsed to the end. Large values belong in variables. */
  tokens: number;
  aliases: number;
  directives: number;
  /** Bytes of a request body. */
  bodyBytes: number;
}

export const DEFAULT_DOCUMENT_LIMITS: DocumentLimits = {
  ...DEFAULT_LIMITS,
  tokens: 2_000,
  aliases: 50,
  directives: 50,
  bodyBytes: 1_500_000,
};

export interface GraphQLOptions {
  deps: SchemaDeps;
  log: Logger;
  limits: DocumentLimits;
  /** Serve GraphiQL to browsers. */
  graphiql: boolean;
  /** Answer introspection, and help with "Did you mean". */
  introspection: boolean;
  /** What links begin with, where no request says it: the public or the listening address. */
  baseUrl: (requestUrl: string | undefined) => string;
}

/** One operation of a WebSocket, as its client sent it. */
export interface SocketParams {
  query: string;
  operationName?: string | null | undefined;
  variables?: Record<string, unknown> | null | undefined;
}

/** What graphql-ws is given to run: nothing in it throws, since that would close the whole socket. */
export interface SocketOperations {
  prepare(viewer: Viewer, params: SocketParams): Promise<ExecutionArgs | readonly GraphQLError[]>;
  execute(args: ExecutionArgs): Promise<ExecutionResult>;
  subscribe(args: ExecutionArgs): Promise<AsyncIterableIterator<ExecutionResult> | ExecutionResult>;
  /** The error of a socket that has too many operations. */
  limitReached(limit: number): readonly GraphQLError[];
}

interface ServerContext {
  /** Who asks over a socket; over HTTP the request says it. */
  viewer?: Viewer;
}

/**
 * GraphQL for every transport: the same limits, masks and context over HTTP, server-sent events and WebSocket. The only
 * file of the server that knows GraphQL itself.
 */
export function createGraphQL(options: GraphQLOptions) {
  const { deps, limits } = options;
  const reads = new AttendedReads(deps.read);
  const results = new SharedResults();
  const mask = createMask(options.log, { suggestions: options.introspection });
  const operationProblem = (args: ExecutionArgs) =>
    sizeProblem(args.schema, { ...args, variables: args.variableValues ?? null }, limits);
  const refuse = (finding: string, limit: Record<string, number>) => () => {
    throw tooComplex(finding, limit);
  };

  const yoga = createYoga<ServerContext, SchemaContext>({
    schema,
    graphqlEndpoint: '/graphql',
    landingPage: false,
    logging: false,
    cors: false,
    multipart: false,
    batching: false,
    maxRequestBodySize: limits.bodyBytes,
    maskedErrors: { maskError: mask, isDev: false },
    parserAndValidationCache: documentCaches(),
    graphiql: options.graphiql ? graphiqlOptions : false,
    renderGraphiQL,
    context: ({ viewer, request }) => {
      const caller = viewer ?? viewerOf(request.headers.get(ACTOR_HEADER) ?? undefined);
      // A socket's operations have no request, and thus nobody who hangs up before the socket does.
      if (caller)
        return createContext(
          deps,
          caller,
          reads.for(() => request?.signal),
          options.baseUrl(request?.url),
        );
      throw new GraphQLError(`${ACTOR_HEADER} ${CALLER_RULE}`, {
        extensions: { code: 'BAD_USER_INPUT', argument: ACTOR_HEADER, http: { status: 400 } },
      });
    },
    plugins: [
      usePostedJson(),
      maxTokensPlugin({
        n: limits.tokens,
        onReject: [refuse(`it has more than ${limits.tokens} tokens`, { tokens: limits.tokens })],
      }),
      maxDepthPlugin({
        n: limits.depth,
        flattenFragments: true,
        onReject: [refuse('it is nested too deeply', { depth: limits.depth })],
      }),
      maxAliasesPlugin({
        n: limits.aliases,
        onReject: [refuse('it has too many aliases', { aliases: limits.aliases })],
      }),
      maxDirectivesPlugin({
        n: limits.directives,
        onReject: [refuse('it has too many directives', { directives: limits.directives })],
      }),
      ...(options.introspection ? [] : [useClosedSchema(NoSchemaIntrospectionCustomRule)]),
      useOperationSize(operationProblem),
      useQueryCancellation((o) => getOperationAST(o.document, o.operationName)?.operation === 'query'),
      useSharedResults(results),
    ],
  });

  async function prepare(viewer: Viewer, params: SocketParams): Promise<ExecutionArgs | readonly GraphQLError[]> {
    try {
      const { schema, parse, validate, contextFactory, execute } = yoga.getEnveloped({
        viewer,
        params,
      } as never);
      const document = parse(params.query);
      const errors = validate(schema, document) as readonly GraphQLError[];
      if (errors.length > 0) return errors.map(withoutInternals);
      const operation = getOperationAST(document, params.operationName);
      if (!operation) return [refusal('there is no such operation in the document')];
      // A mutation's JSON is checked for numbers that would change, which is done where its body is read.
      if (operation.operation === 'mutation') return [refusal('mutations are not served over WebSocket: send a POST')];
      return {
        schema,
        document,
        operationName: params.operationName ?? null,
        variableValues: params.variables ?? null,
        contextValue: await contextFactory(),
        rootValue: { execute },
      };
    } catch (error) {
      return [safeError(error)];
    }
  }

  const safeError = (error: unknown) => withoutInternals(mask(error));
  const failure = (error: unknown): ExecutionResult => ({ errors: [safeError(error)] });
  const safe = (result: ExecutionResult): ExecutionResult =>
    result.errors ? { ...result, errors: result.errors.map(safeError) } : result;

  const operations: SocketOperations = {
    prepare,
    async execute(args) {
      try {
        return safe(await (args.rootValue as Enveloped).execute(args));
      } catch (error) {
        return failure(error);
      }
    },
    // Not by way of the plugins, which would wrap a stream several times over: what they check is checked here.
    async subscribe(args) {
      try {
        const problem = operationProblem(args);
        if (problem) return failure(problem);
        const values = await openValues(args);
        if (!isAsyncIterable(values)) return safe(values);
        const question = results.questionOf(args);
        const resultOf = (value: unknown) => {
          const result = results.of(question, value, args);
          return result instanceof Promise ? result.then(safe) : safe(result);
        };
        return new ResultStream(values, resultOf, (error) => failure(located(error as Error, args)));
      } catch (error) {
        return failure(error);
      }
    },
    limitReached: (limit) => [
      new GraphQLError(`a socket may have ${limit} operations at once`, {
        extensions: { code: 'LIMIT_EXCEEDED', limit, retryAfterMs: null },
      }),
    ],
  };

  return { yoga, operations };
}

interface Enveloped {
  execute(args: ExecutionArgs): Promise<ExecutionResult>;
}

function refusal(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT' } });
}
