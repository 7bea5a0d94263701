import { isAsyncIterable, mapAsyncIterator, type Plugin } from 'graphql-yoga';
import { located, openValues, SharedResults } from '../schema/shared-results.ts';

type Args = Parameters<typeof openValues>[0] & { signal?: AbortSignal };

/** Streams that ask the same of the same value get the same result. Otherwise as GraphQL's own `subscribe`. */
export function useSharedResults(results = new SharedResults()): Plugin {
  async function subscribe(args: Args) {
    const values = await openValues(args);
    if (!isAsyncIterable(values)) return values;
    const iterator = values[Symbol.asyncIterator]();
    const end = () => void iterator.return?.();
    if (args.signal?.aborted) end();
    args.signal?.addEventListener('abort', end, { once: true });
    const question = results.questionOf(args);
    return mapAsyncIterator(
      { [Symbol.asyncIterator]: () => iterator },
      (value) => results.of(question, value, args),
      (error: Error) => {
        throw located(error, args);
      },
    );
  }

  return {
    onSubscribe({ setSubscribeFn }) {
      setSubscribeFn(subscribe);
    },
  };
}
