import type { ServerResponse } from 'node:http';

/** How often stuck streams are looked for, as a share of the time they are given. */
const CHECKS = 4;

/**
 * Open server-sent event streams. One whose client does not read holds its buffers and its place for ever, since
 * nothing that is sent fails: after `stallMs` without a byte taken it is cut off.
 */
export class EventStreams {
  readonly #open = new Map<ServerResponse, { stuckSince: number | null }>();
  readonly #stallMs: number;
  readonly #timer: NodeJS.Timeout;

  constructor(stallMs: number) {
    this.#stallMs = stallMs;
    this.#timer = setInterval(() => this.#check(performance.now()), Math.max(stallMs / CHECKS, 10));
    this.#timer.unref();
  }

  /** Watches a response until it is closed, and keeps proxies from holding it back. */
  add(response: ServerResponse): void {
    response.setHeader('X-Accel-Buffering', 'no');
    const state: { stuckSince: number | null } = { stuckSince: null };
    this.#open.set(response, state);
    response.on('drain', () => {
      state.stuckSince = null;
    });
    response.once('close', () => this.#open.delete(response));
  }

  get count(): number {
    return this.#open.size;
  }

  /** Cuts all streams off. Without a `complete` their clients know that there was more, and come back. */
  close(): void {
    clearInterval(this.#timer);
    for (const response of this.#open.keys()) response.destroy();
  }

  #check(now: number): void {
    for (const [response, state] of this.#open) {
      if (!response.writableNeedDrain) state.stuckSince = null;
      else if (state.stuckSince === null) state.stuckSince = now;
      else if (now - state.stuckSince >= this.#stallMs) response.destroy();
    }
  }
}
