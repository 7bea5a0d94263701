/**
 * The results of a subscription's values, one promise for each besides the source's own: of a thousand subscribers every
 * event passes here a thousand times. When the source or `resultOf` fails, the stream ends with one more result that says
 * why: graphql-ws would send the raw message of what is thrown.
 */
export class ResultStream<Value, Result> implements AsyncIterableIterator<Result, undefined> {
  readonly #values: AsyncIterator<Value>;
  readonly #resultOf: (value: Value) => Result | Promise<Result>;
  readonly #failure: (error: unknown) => Result;
  #ended = false;

  constructor(
    values: AsyncIterable<Value>,
    resultOf: (value: Value) => Result | Promise<Result>,
    failure: (error: unknown) => Result,
  ) {
    this.#values = values[Symbol.asyncIterator]();
    this.#resultOf = resultOf;
    this.#failure = failure;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Result, undefined>> {
    return this.#ended ? Promise.resolve(OVER) : this.#values.next().then(this.#onStep, this.#onFailure);
  }

  async return(): Promise<IteratorResult<Result, undefined>> {
    await this.#end();
    return OVER;
  }

  async throw(error: unknown): Promise<IteratorResult<Result, undefined>> {
    await this.#end();
    throw error;
  }

  readonly #onStep = (step: IteratorResult<Value, unknown>) => {
    if (step.done) return OVER;
    try {
      const result = this.#resultOf(step.value);
      return result instanceof Promise ? result.then(stepOf, this.#onFailure) : stepOf(result);
    } catch (error) {
      return this.#onFailure(error);
    }
  };

  readonly #onFailure = (error: unknown): IteratorYieldResult<Result> => {
    // Of two failures the first is told.
    this.#end().catch(() => {});
    return stepOf(this.#failure(error));
  };

  async #end(): Promise<void> {
    this.#ended = true;
    await this.#values.return?.();
  }
}

const OVER: IteratorReturnResult<undefined> = { value: undefined, done: true };

function stepOf<Result>(value: Result): IteratorYieldResult<Result> {
  return { value, done: false };
}
