import { type Feeds, JobsSource } from './jobs-source.ts';
import { DONE, NOTHING } from './pull.ts';
import type { ChangeFilter, JobsChanged } from './types.ts';

/** What a list shows, and how often it may speak. */
export interface ListOptions {
  tenant: string;
  filter: ChangeFilter;
  /** Lists of a tenant with the same key have the same filter. Without one a list shares nothing but rows. */
  filterKey: string | undefined;
  minIntervalMs: number;
}

/** A stream that shows a list. */
export interface ListReader {
  /** Whether it has nothing to send and waits for the next message. */
  readonly waits: boolean;
  onMessage(message: JobsChanged): void;
  /** The list has ended with this. */
  onFailure(error: unknown): void;
}

/** One list for all streams that show it: its changes are gathered, judged and read once, and all send one message. */
export class ListTopic {
  readonly #source: JobsSource;
  readonly #readers = new Set<ListReader>();
  readonly ready: Promise<void>;
  #asking = false;
  #woken = false;
  #failed = false;

  constructor(feeds: Feeds, options: ListOptions, maxChanged: number) {
    this.#source = new JobsSource(feeds, options.tenant, { ...options, maxChanged });
    this.ready = this.#source.start(() => {
      this.#woken = true;
      this.ask();
    });
    this.ready.catch(() => {
      this.#failed = true;
    });
  }

  /** Whether it has ended with an error; who comes later needs another. */
  get failed(): boolean {
    return this.#failed;
  }

  add(reader: ListReader): void {
    this.#readers.add(reader);
  }

  /** Returns whether somebody is left; with the last one it ends. */
  remove(reader: ListReader): boolean {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return true;
    this.#source.stop();
    return false;
  }

  /** Somebody waits: what has changed is read when it is due. Nothing is read for those who have something to send. */
  ask(): void {
    if (!this.#asking && this.#isAwaited()) void this.#answer();
  }

  #isAwaited(): boolean {
    for (const { waits } of this.#readers) if (waits) return true;
    return false;
  }

  async #answer(): Promise<void> {
    this.#asking = true;
    try {
      do {
        this.#woken = false;
        const polled = await this.#source.poll();
        if (polled === DONE) return;
        if (polled !== NOTHING) for (const reader of this.#readers) reader.onMessage(polled.value);
      } while (this.#woken && this.#isAwaited());
    } catch (error) {
      this.#failed = true;
      for (const reader of this.#readers) reader.onFailure(error);
    } finally {
      this.#asking = false;
    }
  }
}

/** The lists that streams of this process show. */
export class ListTopics {
  readonly #feeds: Feeds;
  readonly #maxChanged: number;
  readonly #shown = new Map<string, ListTopic>();

  constructor(feeds: Feeds, maxChanged: number) {
    this.#feeds = feeds;
    this.#maxChanged = maxChanged;
  }

  /** Adds the reader to the topic of such lists, making it if need be. */
  follow(options: ListOptions, reader: ListReader): ListTopic {
    const key = keyOf(options);
    let topic = key === undefined ? undefined : this.#shown.get(key);
    if (!topic || topic.failed) {
      topic = new ListTopic(this.#feeds, options, this.#maxChanged);
      if (key !== undefined) this.#shown.set(key, topic);
    }
    topic.add(reader);
    return topic;
  }

  unfollow(options: ListOptions, topic: ListTopic, reader: ListReader): void {
    const key = keyOf(options);
    if (topic.remove(reader) || key === undefined || this.#shown.get(key) !== topic) return;
    this.#shown.delete(key);
  }
}

function keyOf({ tenant, minIntervalMs, filterKey }: ListOptions): string | undefined {
  return filterKey === undefined ? undefined : `${tenant} ${minIntervalMs} ${filterKey}`;
}
