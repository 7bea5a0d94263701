import type { Operation } from './channel.ts';
import { RequestError } from './errors.ts';
import type { Transport } from './transport.ts';
import { retryWaitMs } from './waiting.ts';

/** A subscription as a series of values, each given once, over any number of broken connections. */
export interface StreamSpec<T> {
  operation: Operation;
  /** The value of a message, or undefined when it was given before. */
  read(data: Record<string, unknown>): T | undefined;
  /** Whether the stream may end behind this value. */
  isTerminal(value: T): boolean;
  /** Asked when the service ends a stream without a terminal value: is there nothing more to come? */
  isOver(): Promise<boolean>;
  /** For gauges: a reader that is behind gets only the newest value. */
  latestOnly: boolean;
  signal?: AbortSignal | undefined;
}

/** A reader that is this far behind is unsubscribed until it has caught up; memory stays bounded. */
const MAX_BEHIND = 1_000;

/**
 * Subscribes at the first `next()`. Ends behind the terminal value; throws RequestError for what will not heal
 * (`NOT_FOUND`, …) and the signal's reason when it fires. Everything else is repeated with capped, jittered waits.
 */
export function openStream<T>(transport: Transport, spec: StreamSpec<T>): AsyncIterableIterator<T> {
  const ready: T[] = [];
  const waiting: { resolve: (r: IteratorResult<T>) => void; reject: (e: unknown) => void }[] = [];
  let unsubscribe: (() => void) | undefined;
  let retryTimer: ReturnType<typeof setTimeout> | undefined;
  let tries = 0;
  let sawTerminal = false;
  let state: 'new' | 'open' | 'paused' | 'over' = 'new';
  let failure: { error: unknown } | undefined;
  /** Tells callbacks of an earlier subscription, which may still come, from those of the one that is open. */
  let subscription = 0;

  function start(): void {
    state = 'open';
    const mine = ++subscription;
    const current = () => mine === subscription && state === 'open';
    unsubscribe = transport.subscribe(spec.operation, {
      next: (data) => {
        if (!current()) return;
        tries = 0;
        const value = spec.read(data);
        if (value !== undefined) push(value);
      },
      error: (error) => {
        if (!current()) return;
        const transient = error.isUnavailable || error.code === 'LIMIT_EXCEEDED';
        if (transient) restart(Number(error.details.retryAfterMs ?? 0));
        else end(error);
      },
      complete: () => {
        if (!current()) return;
        if (sawTerminal) return end();
        spec.isOver().then(
          (over) => current() && (over ? end() : restart(0)),
          (error) => current() && (error instanceof RequestError && !error.isUnavailable ? end(error) : restart(0)),
        );
      },
    });
  }

  function restart(atLeastMs: number): void {
    subscription++;
    const again = () => {
      try {
        start();
      } catch (error) {
        end(error);
      }
    };
    retryTimer = setTimeout(again, Math.max(atLeastMs, retryWaitMs(tries++)));
  }

  function push(value: T): void {
    sawTerminal = spec.isTerminal(value);
    const reader = waiting.shift();
    if (reader) {
      reader.resolve({ value, done: false });
      return;
    }
    if (spec.latestOnly) ready.length = 0;
    ready.push(value);
    if (ready.length < MAX_BEHIND) return;
    state = 'paused';
    subscription++;
    unsubscribe?.();
  }

  function end(error?: unknown): void {
    if (state === 'over') return;
    state = 'over';
    subscription++;
    clearTimeout(retryTimer);
    spec.signal?.removeEventListener('abort', onAbort);
    unsubscribe?.();
    if (error !== undefined) failure = { error };
    for (const reader of waiting.splice(0)) {
      if (failure) reader.reject(failure.error);
      else reader.resolve({ value: undefined, done: true });
      failure = undefined;
    }
  }

  function onAbort(): void {
    ready.length = 0;
    end(spec.signal?.reason);
  }

  return {
    next() {
      const value = ready.shift();
      if (value !== undefined) return Promise.resolve({ value, done: false });
      if (state === 'new') {
        if (spec.signal?.aborted) onAbort();
        else spec.signal?.addEventListener('abort', onAbort, { once: true });
      }
      if (state === 'over') {
        const failed = failure;
        failure = undefined;
        return failed ? Promise.reject(failed.error) : Promise.resolve({ value: undefined, done: true });
      }
      return new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        try {
          if (state !== 'open') start();
        } catch (error) {
          end(error);
        }
      });
    },
    return() {
      ready.length = 0;
      failure = undefined;
      end();
      return Promise.resolve({ value: undefined, done: true });
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
