import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  GraphQLError,
  getOperationAST,
} from 'graphql';
import { jsonDigest } from '../core/json.ts';
import { callerKey, type SchemaContext } from './context.ts';

/** How long a result may be taken by others: what depends on the moment (a remaining time) may be this old. */
const KEPT_MS = 100;
/** Values kept at most. What streams send together is sent together; the rest would only fill memory. */
const MAX_VALUES = 500;

type Result = ExecutionResult | Promise<ExecutionResult>;

/**
 * The values of a subscription, before GraphQL is executed over them; or why there are none, as other executors say it: a
 * request that is refused because of its variables is the client's fault.
 */
export async function openValues(args: ExecutionArgs): Promise<AsyncIterable<unknown> | ExecutionResult> {
  const values = await createSourceEventStream(args);
  if (Symbol.asyncIterator in values) return values;
  return { ...values, errors: values.errors?.map((error) => (isRefusal(error) ? refused(error) : error)) ?? [] };
}

// What a resolver throws has its path.
const isRefusal = (error: GraphQLError) => error.path === undefined;

function refused({ message, nodes }: GraphQLError): GraphQLError {
  return new GraphQLError(message, { nodes, extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } } });
}

/** What a stream failed by, with its place in the document. */
export function located(error: Error, { document, operationName }: ExecutionArgs): GraphQLError {
  return new GraphQLError(error.message, {
    originalError: error,
    nodes: getOperationAST(document, operationName) ?? null,
  });
}

/**
 * Results of values that several streams send: of a thousand subscribers to one list or one job, the first has GraphQL
 * executed, and the others take what it got.
 */
export class SharedResults {
  readonly #documents = new WeakMap<DocumentNode, number>();
  #lastDocument = 0;
  readonly #ofValue = new Map<unknown, Map<string, ExecutionResult>>();
  #clearing: NodeJS.Timeout | undefined;

  /** Equal for two operations that get equal results for every value. */
  questionOf({ document, operationName, variableValues, contextValue }: ExecutionArgs): string {
    // Equal documents are parsed once as long as they are asked for, so that here they are one.
    let id = this.#documents.get(document);
    if (id === undefined) {
      id = ++this.#lastDocument;
      this.#documents.set(document, id);
    }
    return jsonDigest([id, operationName, variableValues, callerKey(contextValue as SchemaContext)]);
  }

  /**
   * Only what is known at once is shared. What had to be read first depends on the moment, and on who might hang up
   * meanwhile; reads have their own ways of being shared.
   */
  of(question: string, value: unknown, args: ExecutionArgs): Result {
    const known = this.#ofValue.get(value)?.get(question);
    if (known) return known;
    const result = execute({ ...args, rootValue: value });
    if (!(result instanceof Promise)) this.#keep(question, value, result);
    return result;
  }

  #keep(question: string, value: unknown, result: ExecutionResult): void {
    if (this.#ofValue.size >= MAX_VALUES) this.#ofValue.clear();
    const ofValue = this.#ofValue.get(value) ?? new Map<string, ExecutionResult>();
    this.#ofValue.set(value, ofValue.set(question, result));
    this.#clearing ??= setTimeout(() => {
      this.#clearing = undefined;
      this.#ofValue.clear();
    }, KEPT_MS).unref();
  }
}
