/** What a stream is made of. */
export interface Source<T> {
  /** Registers, before anything is awaited, and makes ready. Called once, at the first `next()`. */
  start(wake: () => void): Promise<void>;
  /** The next value; or DONE; or NOTHING now: then `wake` is called when there may be. Never called concurrently. */
  poll(): Polled<T> | Promise<Polled<T>>;
  /** Frees everything. Called once, if `start` was, possibly while `start` or `poll` is under way. */
  stop(): void;
}

export const DONE = Symbol('done');
export const NOTHING = Symbol('nothing');
export type Polled<T> = { value: T } | typeof DONE | typeof NOTHING;

/** After so many values without a pause the event loop gets its turn, or a fast source would keep it for itself. */
const VALUES_PER_TURN = 50;

interface Waiting<T> {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
}

/**
 * An iterator over a source, written out because an async generator that waits cannot be ended: its `return()` queues
 * behind the `next()` that waits. Here `return()` settles what waits and frees the source at once.
 */
export class PullStream<T> implements AsyncIterableIterator<T, undefined> {
  readonly #source: Source<T>;
  readonly #onStart: () => void;
  readonly #onEnd: () => void;
  readonly #signal: AbortSignal | undefined;
  readonly #abort = () => this.#end();
  #waiting: Waiting<T>[] = [];
  #started = false;
  #ended = false;
  #pumping = false;
  #woken = false;
  #resume: (() => void) | undefined;
  #served = 0;

  constructor(
    source: Source<T>,
    options: { signal?: AbortSignal | undefined; onStart: () => void; onEnd: () => void },
  ) {
    this.#source = source;
    this.#onStart = options.onStart;
    this.#onEnd = options.onEnd;
    this.#signal = options.signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#signal?.aborted) this.#end();
    if (this.#ended) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      if (!this.#pumping) void this.#pump();
    });
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#end();
    return Promise.resolve({ value: undefined, done: true });
  }

  throw(error?: unknown): Promise<IteratorResult<T, undefined>> {
    this.#end();
    return Promise.reject(error);
  }

  async #pump(): Promise<void> {
    this.#pumping = true;
    try {
      if (!this.#started) {
        this.#started = true;
        this.#onStart();
        this.#signal?.addEventListener('abort', this.#abort, { once: true });
        await this.#source.start(() => this.#wake());
      }
      while (this.#waiting.length > 0 && !this.#ended) await this.#step();
    } catch (error) {
      // The first that waits learns why; the others that it is over.
      const first = this.#ended ? undefined : this.#waiting.shift();
      this.#end();
      first?.reject(error);
    } finally {
      this.#pumping = false;
    }
  }

  async #step(): Promise<void> {
    this.#woken = false;
    const polled = this.#source.poll();
    const step = polled instanceof Promise ? await polled : polled;
    if (this.#ended) return;
    if (step === DONE) return this.#end();
    if (step !== NOTHING) {
      this.#waiting.shift()?.resolve({ value: step.value, done: false });
      if (++this.#served % VALUES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      return;
    }
    this.#served = 0;
    if (this.#woken) return;
    await new Promise<void>((resolve) => {
      this.#resume = resolve;
    });
  }

  #wake(): void {
    this.#woken = true;
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { resolve } of waiting) resolve({ value: undefined, done: true });
    this.#signal?.removeEventListener('abort', this.#abort);
    if (this.#started) this.#source.stop();
    this.#onEnd();
    this.#wake();
  }
}
