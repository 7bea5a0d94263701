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

/** `queueMicrotask` makes an object that async hooks could follow, at every call. */
const SOON = Promise.resolve();

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
  readonly #serveWoken = () => this.#serve();
  #waiting: Waiting<T>[] = [];
  #started = false;
  #ended = false;
  /** Somebody will call `#serve` or is in it: nobody else must. */
  #busy = false;
  #woken = false;
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
      if (!this.#busy) this.#serve();
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

  /**
   * Gives those who wait what there is. Written out, with a promise only where the source has one: this runs for every value
   * of every stream.
   */
  #serve(): void {
    this.#busy = true;
    try {
      if (this.#started) this.#serveAll();
      else this.#start();
    } catch (error) {
      this.#fail(error);
    }
  }

  #serveAll(): void {
    while (this.#waiting.length > 0 && !this.#ended) {
      this.#woken = false;
      const polled = this.#source.poll();
      if (polled instanceof Promise) {
        polled.then(this.#goOn, this.#fail);
        return;
      }
      if (!this.#take(polled)) return;
    }
    this.#busy = false;
  }

  readonly #goOn = (polled: Polled<T>): void => {
    if (this.#take(polled)) this.#serve();
  };

  #start(): void {
    this.#started = true;
    this.#onStart();
    this.#signal?.addEventListener('abort', this.#abort, { once: true });
    this.#source.start(this.#wake).then(() => this.#serve(), this.#fail);
  }

  /** Returns whether to go on at once. If not, a wake, the next `next()` or the next turn of the event loop does. */
  #take(polled: Polled<T>): boolean {
    if (this.#ended) {
      this.#busy = false;
      return false;
    }
    if (polled === DONE) {
      this.#busy = false;
      this.#end();
      return false;
    }
    if (polled === NOTHING) {
      this.#served = 0;
      this.#busy = this.#woken;
      return this.#woken;
    }
    this.#waiting.shift()?.resolve({ value: polled.value, done: false });
    if (++this.#served % VALUES_PER_TURN !== 0) return true;
    setImmediate(() => this.#serve());
    return false;
  }

  readonly #fail = (error: unknown): void => {
    // The first that waits learns why; the others that it is over.
    const first = this.#ended ? undefined : this.#waiting.shift();
    this.#busy = false;
    this.#end();
    first?.reject(error);
  };

  /** Not served at once: who wakes may be in the middle of something. */
  readonly #wake = (): void => {
    this.#woken = true;
    if (this.#busy || this.#ended || this.#waiting.length === 0) return;
    this.#busy = true;
    void SOON.then(this.#serveWoken);
  };

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { resolve } of waiting) resolve({ value: undefined, done: true });
    this.#signal?.removeEventListener('abort', this.#abort);
    if (this.#started) this.#source.stop();
    this.#onEnd();
  }
}
