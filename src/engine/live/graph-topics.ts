import type { Graphs } from './graph-source.ts';
import { type GraphKey, GraphTopic } from './graph-topic.ts';
import type { Feeds, TenantFeed } from './tenant-feed.ts';

/** The graphs that streams of this process follow, each once, by the changes of its tenant. */
export class GraphTopics implements Graphs {
  readonly #feeds: Feeds;
  readonly #followed = new Map<string, { topic: GraphTopic; feed: TenantFeed }>();

  constructor(feeds: Feeds) {
    this.#feeds = feeds;
  }

  get size(): number {
    return this.#followed.size;
  }

  follow: Graphs['follow'] = (key, watcher) => {
    let followed = this.#followed.get(idOf(key));
    if (!followed) {
      const topic = new GraphTopic(key, this.#feeds.readers);
      followed = { topic, feed: this.#feeds.join(key.tenant, topic) };
      this.#followed.set(idOf(key), followed);
    }
    followed.topic.add(watcher);
    return { topic: followed.topic, ready: followed.feed.ready };
  };

  unfollow: Graphs['unfollow'] = (topic, watcher) => {
    const followed = this.#followed.get(idOf(topic.key));
    if (topic.remove(watcher) || followed?.topic !== topic) return;
    this.#followed.delete(idOf(topic.key));
    this.#feeds.leave(followed.feed, topic);
  };

  /** Looks how far the nodes are, in case a message was lost: a stream that waits for the last one would never end. */
  async poll(): Promise<void> {
    const asked = [...this.#followed.values()].map(({ topic }) => ({ topic, jobs: topic.jobs }));
    const keys = asked.flatMap(({ jobs }) => jobs);
    if (keys.length === 0) return;
    const heads = await this.#feeds.readers.heads(keys);
    let at = 0;
    for (const { topic, jobs } of asked) {
      topic.onHeads(jobs, heads.slice(at, at + jobs.length));
      at += jobs.length;
    }
  }
}

const idOf = ({ tenant, graphId }: GraphKey) => `${graphId} ${tenant}`;
