import { type ListReader, ListTopic } from './list-topic.ts';
import type { Feeds } from './tenant-feed.ts';
import type { ChangeFilter } from './types.ts';

/** What a list shows, and how often it may speak. */
export interface ListOptions {
  tenant: string;
  filter: ChangeFilter;
  /** Lists of a tenant with the same key have the same filter. Without one a list shares nothing but rows. */
  filterKey: string | undefined;
  minIntervalMs: number;
}

/** The lists that streams of this process show, each once. */
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
      const { tenant, filter, minIntervalMs } = options;
      const readEveryMs = gridOf(minIntervalMs);
      topic = new ListTopic(this.#feeds, { tenant, filter, maxChanged: this.#maxChanged, readEveryMs });
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

/** Streams of a list speak at common moments, so many milliseconds apart: what they send is then made once for all. */
export function gridOf(minIntervalMs: number): number {
  return Math.min(50, minIntervalMs / 5);
}
