import { setMaxListeners } from 'node:events';
import type { Client } from './clients.ts';
import type { ErrorBook } from './error-book.ts';
import { rawEvents } from './raw-events.ts';

/** What one subscriber was told about one job. */
export interface Following {
  readonly jobId: string;
  /** Index of the API. */
  readonly api: number;
  readonly by: 'events' | 'raw events' | 'progress';
  /** It asked for what is behind this `seq`. */
  readonly after: number;
  /** Facts: as they came. */
  readonly facts: { seq: number; type: string; run: number; attempt: number | null }[];
  /** Gauges: as they came. */
  readonly views: { version: number; state: string; run: number }[];
  /** The stream came to its end; else why not. */
  ended: 'end' | string;
}

/** Subscribers of all APIs, each over any number of broken connections. */
export class Followers {
  readonly all: Following[] = [];
  readonly #clients: readonly Client[];
  readonly #urls: readonly string[];
  readonly #errors: ErrorBook;
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(clients: readonly Client[], urls: readonly string[], errors: ErrorBook) {
    this.#clients = clients;
    this.#urls = urls;
    this.#errors = errors;
    // Every subscriber listens; that is no leak.
    setMaxListeners(0, this.#stop.signal);
  }

  /** Follows a job through every API. */
  follow(jobId: string, by: Following['by'], after: number): void {
    for (const api of this.#clients.keys()) {
      const following: Following = { jobId, api, by, after, facts: [], views: [], ended: 'still open' };
      this.all.push(following);
      const running = this.#run(following).finally(() => this.#running.delete(running));
      this.#running.add(running);
    }
  }

  get open(): number {
    return this.#running.size;
  }

  /** Waits for the ends of all, at most so long; who has not ended by then never will. */
  async ended(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.#stop.abort(), timeoutMs);
    await Promise.all(this.#running);
    clearTimeout(timer);
  }

  async #run(following: Following): Promise<void> {
    const { jobId, api, by, after } = following;
    const { signal } = this.#stop;
    const handle = (this.#clients[api] as Client).job(jobId);
    try {
      if (by === 'progress') {
        for await (const { version, state, run } of handle.progress({ signal })) {
          following.views.push({ version, state, run });
        }
      } else {
        const events =
          by === 'events'
            ? handle.events({ after, signal })
            : rawEvents(this.#urls[api] as string, { id: jobId, after, api, signal, errors: this.#errors });
        for await (const { seq, type, run, attempt } of events) following.facts.push({ seq, type, run, attempt });
      }
      following.ended = 'end';
    } catch (error) {
      if (signal.aborted) return;
      this.#errors.add(`follow ${by}`, api, error);
      following.ended = String(error);
    }
  }
}
