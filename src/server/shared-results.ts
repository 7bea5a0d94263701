import { createSourceEventStream, type DocumentNode, type ExecutionArgs, type ExecutionResult, execute } from 'graphql';
import { isAsyncIterable, mapAsyncIterator, type Plugin } from 'graphql-yoga';
import { callerKey, type SchemaContext } from '../schema/context.ts';

/** How long a result may be taken by others: what depends on the moment (a remaining time) may be this old. */
const KEPT_MS = 100;
/** Values kept at most. What streams send together is sent together; the rest would only fill memory. */
const MAX_VALUES = 500;

type Subscribed = AsyncIterable<ExecutionResult> | ExecutionResult;

/**
 * Streams that ask the same of the same value get the same result: of a thousand subscribers to one list or one job, the
 * first has GraphQL executed, and the others take what it got.
 */
export function useSharedResults(): Plugin {
  const results = new SharedResults();
  return {
    onSubscribe({ setSubscribeFn }) {
      setSubscribeFn((args: ExecutionArgs) => subscribe(args, results));
    },
  };
}

/** graphql-js's `subscribe`, but for the execution of each value, and that it ends with `args.signal`. */
async function subscribe(args: ExecutionArgs & { signal?: AbortSignal }, results: SharedResults): Promise<Subscribed> {
  const values = await createSourceEventStream(args);
  if (!isAsyncIterable(values)) return values;
  const iterator = values[Symbol.asyncIterator]();
  const end = () => void iterator.return?.();
  if (args.signal?.aborted) end();
  args.signal?.addEventListener('abort', end, { once: true });
  const question = results.questionOf(args);
  return mapAsyncIterator({ [Symbol.asyncIterator]: () => iterator }, (value) =>
    results.of(question, value as object, () => execute({ ...args, rootValue: value })),
  );
}

class SharedResults {
  readonly #documents = new WeakMap<DocumentNode, number>();
  #lastDocument = 0;
  #ofValue = new Map<object, Map<string, ExecutionResult>>();
  #since = 0;

  /** Equal for two operations that get equal results for every value. */
  questionOf({ document, operationName, variableValues, contextValue }: ExecutionArgs): string {
    // Equal documents are parsed once as long as they are asked for, so that here they are one.
    let id = this.#documents.get(document);
    if (id === undefined) {
      id = ++this.#lastDocument;
      this.#documents.set(document, id);
    }
    return JSON.stringify([id, operationName, variableValues, callerKey(contextValue as SchemaContext)]);
  }

  /**
   * Only what is known at once is shared. What had to be read first depends on the moment, and on who might hang up
   * meanwhile; reads have their own ways of being shared.
   */
  of(
    question: string,
    value: object,
    compute: () => ExecutionResult | Promise<ExecutionResult>,
  ): ExecutionResult | Promise<ExecutionResult> {
    const now = performance.now();
    if (now - this.#since > KEPT_MS || this.#ofValue.size >= MAX_VALUES) {
      this.#ofValue = new Map();
      this.#since = now;
    }
    const known = this.#ofValue.get(value)?.get(question);
    if (known) return known;
    const result = compute();
    if (!(result instanceof Promise)) {
      const ofValue = this.#ofValue.get(value) ?? new Map<string, ExecutionResult>();
      this.#ofValue.set(value, ofValue.set(question, result));
    }
    return result;
  }
}
