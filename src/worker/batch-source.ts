import { NonRetryableError } from '../core/handler-errors.ts';
import { settledWithin } from './timing.ts';

export interface SourceItem<V, C> {
  value: V;
  cursor: C;
}

/** A source that waits for something must not keep a handler that wants to end. */
const CLOSE_WAIT_MS = 1_000;

/** Takes batches out of a user's iterable, sync or async. */
export class BatchSource<V, C> {
  readonly #iterator: Iterator<SourceItem<V, C>> | AsyncIterator<SourceItem<V, C>>;
  readonly #controller = new AbortController();
  readonly #unfollow: () => void;
  #finished = false;

  /** @param open the user's function; its signal fires with `signal`, or when the source is closed early */
  constructor(
    open: (s: { signal: AbortSignal }) => Iterable<SourceItem<V, C>> | AsyncIterable<SourceItem<V, C>>,
    signal: AbortSignal,
  ) {
    const follow = (): void => this.#controller.abort(signal.reason);
    if (signal.aborted) follow();
    else signal.addEventListener('abort', follow, { once: true });
    this.#unfollow = () => signal.removeEventListener('abort', follow);
    try {
      this.#iterator = iteratorOf(open({ signal: this.#controller.signal }));
    } catch (error) {
      this.#unfollow();
      throw error;
    }
  }

  /** The next `size` items, fewer at the end, none behind it. Calls must not overlap. */
  async take(size: number): Promise<SourceItem<V, C>[]> {
    const items: SourceItem<V, C>[] = [];
    while (items.length < size && !this.#finished) {
      let next: IteratorResult<SourceItem<V, C>>;
      try {
        const given = this.#iterator.next();
        // A list of a hundred thousand items need not wait for a microtask each.
        next = 'then' in given ? await given : given;
      } catch (error) {
        // An iterator that threw is closed: `return()` is not for it.
        this.#finished = true;
        throw error;
      }
      if (next.done) this.#finished = true;
      else items.push(checked(next.value));
    }
    return items;
  }

  /** Closes the iterator unless it is at its end. Waits for that only so long, and never throws. */
  async close(): Promise<void> {
    this.#unfollow();
    if (this.#finished) return;
    this.#finished = true;
    this.#controller.abort(new Error('the batches ended before the source did'));
    const closing = (async () => {
      await this.#iterator.return?.();
    })();
    await settledWithin(closing, CLOSE_WAIT_MS);
  }
}

function iteratorOf<T>(source: Iterable<T> | AsyncIterable<T>): Iterator<T> | AsyncIterator<T> {
  const make = (source as Partial<AsyncIterable<T>> | null)?.[Symbol.asyncIterator];
  if (typeof make === 'function') return make.call(source);
  const makeSync = (source as Partial<Iterable<T>> | null)?.[Symbol.iterator];
  if (typeof makeSync === 'function') return makeSync.call(source);
  throw new NonRetryableError('the source of ctx.batches must return an iterable or an async iterable', {
    code: 'INVALID_SOURCE',
  });
}

function checked<V, C>(item: SourceItem<V, C>): SourceItem<V, C> {
  if (typeof item === 'object' && item !== null && 'value' in item && 'cursor' in item) return item;
  throw new NonRetryableError('the source of ctx.batches must give items of the form { value, cursor }', {
    code: 'INVALID_SOURCE',
  });
}
