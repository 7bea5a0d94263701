import { CursorInvalid, NotFound, Unavailable } from '../../core/errors.ts';
import { type JobEvent, TERMINAL_EVENTS } from '../../core/event.ts';
import { publicId } from '../../core/ids.ts';
import { isTerminal } from '../../core/state.ts';
import type { LiveKey } from '../../db/reads/live.ts';
import { DONE, NOTHING, type Polled, type Source } from './pull.ts';
import type { Readers } from './readers.ts';
import type { Topic, Watcher } from './topic.ts';

/** Where streams find the topics that they share. */
export interface Topics {
  /** Adds the watcher to the job's topic, making it if need be. */
  follow(key: LiveKey, watcher: Watcher): Topic;
  unfollow(topic: Topic, watcher: Watcher): void;
  readonly readers: Readers;
  /** After a failed read: wakes every watcher when the store may be there again. */
  lookAgain(error: unknown): void;
}

export const notFound = (key: LiveKey) => new NotFound('job', publicId('Job', key.jobId));

/**
 * Facts of one job behind a cursor. It registers on the channel first and reads then, so nothing falls in between. It
 * takes from the topic's ring what is there, and reads for itself what is older: a slow reader costs a page of memory.
 */
export class EventSource implements Source<JobEvent>, Watcher {
  readonly wants = 'events';
  wake: () => void = () => {};
  readonly #topics: Topics;
  readonly #key: LiveKey;
  readonly #untilTerminal: boolean;
  #topic: Topic | undefined;
  #cursor: number;
  #page: JobEvent[] = [];
  #done = false;

  constructor(topics: Topics, key: LiveKey, options: { after: number; untilTerminal: boolean }) {
    this.#topics = topics;
    this.#key = key;
    this.#cursor = Math.max(0, options.after);
    this.#untilTerminal = options.untilTerminal;
  }

  async start(wake: () => void): Promise<void> {
    this.wake = wake;
    const topic = this.#topics.follow(this.#key, this);
    this.#topic = topic;
    await topic.ready;
    const row = await topic.refresh();
    if (!row) throw notFound(this.#key);
    this.#checkCursor(topic);
    const isAtEnd = this.#cursor === row.lastSeq && this.#cursor === topic.lastSeq;
    this.#done = isAtEnd && (row.prunedAt !== null || (this.#untilTerminal && isTerminal(row.state)));
  }

  poll(): Polled<JobEvent> | Promise<Polled<JobEvent>> {
    const topic = this.#topic;
    if (this.#done || !topic) return DONE;
    const next = this.#page.length > 0 ? this.#page.shift() : topic.ring.get(this.#cursor + 1);
    if (next) return this.#deliver(topic, next);
    if (topic.gone || topic.pruned) throw notFound(this.#key);
    if (topic.broken) throw topic.broken;
    this.#checkCursor(topic);
    return topic.ring.end === null || this.#cursor >= topic.ring.end ? NOTHING : this.#read(topic);
  }

  stop(): void {
    this.#page = [];
    if (this.#topic) this.#topics.unfollow(this.#topic, this);
  }

  #deliver(topic: Topic, event: JobEvent): Polled<JobEvent> {
    this.#cursor = event.seq;
    // An earlier run's end is followed by the next run: only the end of the newest is the end of the stream.
    const isNewest = this.#page.length === 0 && event.seq >= topic.lastSeq;
    this.#done = this.#untilTerminal && isNewest && (TERMINAL_EVENTS.includes(event.type) || topic.hasEnded);
    return { value: event };
  }

  /** What the ring no longer has. */
  async #read(topic: Topic): Promise<Polled<JobEvent>> {
    try {
      const page = await this.#topics.readers.events({ ...this.#key, after: this.#cursor });
      const first = page[0];
      if (first?.seq === this.#cursor + 1) {
        topic.offer(page);
        this.#page = page.slice(1);
        return this.#deliver(topic, first);
      }
      if ((await topic.refresh()) && !topic.pruned && this.#cursor < topic.lastSeq) {
        throw new Error(`event ${this.#cursor + 1} of job ${this.#key.jobId} is missing`);
      }
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      this.#topics.lookAgain(error);
      return NOTHING;
    }
    return this.poll();
  }

  #checkCursor(topic: Topic): void {
    if (this.#cursor <= topic.lastSeq) return;
    throw new CursorInvalid(
      `event ${this.#cursor} is beyond the newest one, ${topic.lastSeq}, of job ${publicId('Job', this.#key.jobId)}: ` +
        'the store was restored from an older copy; read again from 0',
    );
  }
}
