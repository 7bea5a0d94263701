import type { JobEvent } from '../../core/event.ts';

/** The newest facts of a job, without gaps, up to `end`. */
export class Ring {
  readonly capacity: number;
  #events: JobEvent[] = [];
  /** The `seq` of the newest fact that was taken in; null: not followed. */
  end: number | null = null;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** Forgets everything and goes on behind `end`. */
  reset(end: number | null): void {
    this.#events = [];
    this.end = end;
  }

  /** The fact of this `seq`, or undefined when it is too old, or not there yet. */
  get(seq: number): JobEvent | undefined {
    return this.end === null ? undefined : this.#events[seq - (this.end - this.#events.length) - 1];
  }

  /** Takes in what follows without a gap; what is known already is passed over. True when there was something new. */
  append(events: readonly JobEvent[]): boolean {
    if (this.end === null) return false;
    const before = this.end;
    for (const event of events.toSorted((a, b) => a.seq - b.seq)) {
      if (event.seq !== this.end + 1) continue;
      this.#events.push(event);
      this.end = event.seq;
    }
    if (this.#events.length > this.capacity) this.#events.splice(0, this.#events.length - this.capacity);
    return this.end > before;
  }

  /** Takes in older facts that reach up to what is here, if there is room: the next who replays needs no read. */
  prepend(events: readonly JobEvent[]): void {
    if (this.end === null) return;
    const start = this.end - this.#events.length + 1;
    const older = events.filter((event) => event.seq < start);
    if (older.at(-1)?.seq !== start - 1 || this.#events.length + older.length > this.capacity) return;
    this.#events.unshift(...older);
  }
}
