/** A store that is away is asked again after this long. */
export const AWAY_MS = 1_000;

/** How often a stream may speak: at most one message an interval, and a wake-up when the next may be sent. */
export class Pace {
  readonly #intervalMs: number;
  readonly #gridMs: number;
  #wake: () => void = () => {};
  /** By `performance.now()`. */
  #nextAt = 0;
  #timer: { handle: NodeJS.Timeout; at: number } | undefined;
  #stopped = false;

  /** @param gridMs messages are due at multiples of it only: streams that are due together can be told together */
  constructor(intervalMs: number, gridMs = 0) {
    this.#intervalMs = intervalMs;
    this.#gridMs = gridMs;
  }

  /** @param wake told when there is something to be asked for */
  start(wake: () => void): void {
    this.#wake = wake;
  }

  /** No further wake-up. A second call does nothing. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer?.handle);
    this.#timer = undefined;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Whether a message may be sent now. */
  get isDue(): boolean {
    return performance.now() >= this.#nextAt;
  }

  /** A message is on its way: the interval begins. */
  sent(): void {
    const at = performance.now() + this.#intervalMs;
    this.#nextAt = this.#gridMs > 0 ? Math.ceil(at / this.#gridMs) * this.#gridMs : at;
  }

  /** The store is away: nothing for at least so long. */
  holdOff(ms: number): void {
    this.#nextAt = performance.now() + Math.max(ms, this.#intervalMs);
  }

  /** Wakes when a message may be sent, at once when it may be now. */
  whenDue(): void {
    this.wakeAt(this.#nextAt);
  }

  /** Wakes at a moment, but not before a message may be sent; the earliest of several counts. */
  wakeAt(at: number): void {
    if (this.#stopped) return;
    const due = Math.max(at, this.#nextAt);
    if (this.#timer && this.#timer.at <= due) return;
    clearTimeout(this.#timer?.handle);
    this.#timer = undefined;
    const wait = due - performance.now();
    if (wait <= 0) {
      this.#wake();
      return;
    }
    const handle = setTimeout(() => {
      this.#timer = undefined;
      this.#wake();
    }, wait);
    this.#timer = { handle, at: due };
  }
}
