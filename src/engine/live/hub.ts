import { shardOf } from '../../core/change.ts';
import { LimitExceeded } from '../../core/errors.ts';
import { boundedLog } from '../../events/bounded-log.ts';
import type { Subscription } from '../../events/channel.ts';
import { ApprovalsSource } from './approvals-source.ts';
import { EventSource, type Topics } from './event-source.ts';
import { GraphSource } from './graph-source.ts';
import { GraphTopics } from './graph-topics.ts';
import { ListSource } from './list-source.ts';
import { ListTopics } from './list-topics.ts';
import { createPoller } from './poller.ts';
import { ProgressSource } from './progress-source.ts';
import { PullStream, type Source } from './pull.ts';
import { QueueReader, QueuesSource } from './queues-source.ts';
import { Readers } from './readers.ts';
import { type Feeds, type ListWatcher, TenantFeed } from './tenant-feed.ts';
import { Topic, type Watcher } from './topic.ts';
import type { LiveHub, LiveHubOptions } from './types.ts';

/** One shard of a tenant: its subscription, and the followed jobs in it. */
interface Shard {
  readonly subscription: Subscription;
  readonly topics: Map<string, Topic>;
}

/** Opens the live streams of a process; see LiveHub. It does nothing until something is followed. */
export function createLiveHub(options: LiveHubOptions): LiveHub {
  const {
    channel,
    pollMs = 1_000,
    safetyMs = 5_000,
    maxStreams = 20_000,
    maxTenantStreams = 10_000,
    ringSize = 256,
    maxChanged = 500,
  } = options;
  const say = boundedLog(options.log);
  const readers = new Readers(options.db, options.pageSize ?? 200);
  const streams = new Set<{ return(): Promise<unknown> }>();
  const ofTenant = new Map<string, number>();
  const shards = new Map<string, Shard>();
  const feeds = new Map<string, TenantFeed>();
  let troubled = false;
  let closed = false;

  const allTopics = () => [...shards.values()].flatMap((shard) => [...shard.topics.values()]);

  async function tick(): Promise<void> {
    const wasTroubled = troubled;
    troubled = false;
    const { state } = channel;
    const topics = allTopics();
    if (topics.length > 0) {
      const before = topics.map((topic) => topic.head?.version ?? 0);
      const heads = await readers.heads(topics.map((topic) => topic.key));
      topics.forEach((topic, i) => {
        topic.onHead(heads[i], before[i] ?? 0);
        if (wasTroubled) topic.wakeAll();
      });
    }
    if (graphs.size > 0) await graphs.poll();
    if (feeds.size > 0) {
      for (const pulse of await readers.pulses([...feeds.keys()])) feeds.get(pulse.tenant)?.onPulse(pulse, state);
    }
  }

  function lookAgain(error: unknown): void {
    say('warn', 'read', { err: error }, 'a read for the live streams failed; it is repeated');
    troubled = true;
    poller.within(pollMs);
  }

  const poller = createPoller(tick, () => (channel.state === 'live' ? safetyMs : pollMs), lookAgain);

  // Whatever the new state is, messages may have been lost before it was noticed.
  const offState = channel.onState(() => {
    for (const feed of feeds.values()) feed.reset();
    poller.now();
  });

  function stopIfIdle(): void {
    if (shards.size + feeds.size === 0) poller.stop();
  }

  const topics: Topics & Feeds = {
    readers,
    lookAgain,

    follow(key, watcher) {
      const id = `${shardOf(key.jobId)} ${key.tenant}`;
      let shard = shards.get(id);
      if (!shard) {
        const followed = new Map<string, Topic>();
        const subscription = channel.onChanges(key.tenant, shardOf(key.jobId), (changes) => {
          for (const change of changes) followed.get(change.jobId)?.onChange(change);
          if (changes.length === 0) poller.now();
        });
        shard = { subscription, topics: followed };
        shards.set(id, shard);
      }
      let topic = shard.topics.get(key.jobId);
      if (!topic || topic.gone || topic.broken) {
        topic = new Topic(key, { readers, ringSize, ready: shard.subscription.ready, onTrouble: lookAgain });
        shard.topics.set(key.jobId, topic);
      }
      topic.add(watcher);
      poller.start();
      return topic;
    },

    unfollow(topic: Topic, watcher: Watcher) {
      if (topic.remove(watcher)) return;
      const id = `${shardOf(topic.key.jobId)} ${topic.key.tenant}`;
      const shard = shards.get(id);
      if (shard?.topics.get(topic.key.jobId) !== topic) return;
      shard.topics.delete(topic.key.jobId);
      if (shard.topics.size > 0) return;
      shards.delete(id);
      shard.subscription.unsubscribe();
      stopIfIdle();
    },

    join(tenant: string, watcher: ListWatcher) {
      let feed = feeds.get(tenant);
      if (!feed) {
        feed = new TenantFeed(channel, tenant, 2 * pollMs);
        feeds.set(tenant, feed);
      }
      feed.add(watcher);
      poller.start();
      return feed;
    },

    leave(feed: TenantFeed, watcher: ListWatcher) {
      if (feed.remove(watcher)) return;
      feeds.delete(feed.tenant);
      feed.close();
      stopIfIdle();
    },
  };

  const graphs = new GraphTopics(topics);
  const lists = new ListTopics(topics, maxChanged);
  const queues = new QueueReader(options.db);

  function count(tenant: string, n: 1 | -1): void {
    const left = (ofTenant.get(tenant) ?? 0) + n;
    if (left > 0) ofTenant.set(tenant, left);
    else ofTenant.delete(tenant);
  }

  function open<T>(tenant: string, source: Source<T>, signal: AbortSignal | undefined): PullStream<T> {
    const counted: Source<T> = {
      start(wake) {
        // This one is counted among them.
        for (const [n, limit] of [
          [streams.size, maxStreams],
          [ofTenant.get(tenant) ?? 0, maxTenantStreams],
        ] as const) {
          if (n > limit) throw new LimitExceeded('too many live streams are open; try again later', limit, 5_000);
        }
        return source.start(wake);
      },
      poll: () => source.poll(),
      stop: () => source.stop(),
    };
    const stream = new PullStream(counted, {
      signal,
      onStart: () => {
        streams.add(stream);
        count(tenant, 1);
      },
      onEnd: () => {
        if (streams.delete(stream)) count(tenant, -1);
      },
    });
    if (closed) void stream.return();
    return stream;
  }

  return {
    jobEvents({ tenant }, jobId, { after = 0, untilTerminal = true, signal } = {}) {
      return open(tenant, new EventSource(topics, { tenant, jobId }, { after, untilTerminal }), signal);
    },
    jobProgress({ tenant }, jobId, { untilTerminal = true, signal } = {}) {
      return open(tenant, new ProgressSource(topics, { tenant, jobId }, { untilTerminal }), signal);
    },
    jobsChanged({ tenant }, { filter = {}, filterKey, minIntervalMs = 250, signal } = {}) {
      const options = { tenant, filter, filterKey, minIntervalMs };
      return open(tenant, new ListSource(lists, options), signal);
    },
    approvalsChanged({ tenant }, { filter = {}, signal } = {}) {
      return open(tenant, new ApprovalsSource(topics, options.db, tenant, { filter, maxChanged }), signal);
    },
    queuesChanged({ tenant }, { minIntervalMs = 1_000, signal } = {}) {
      return open(tenant, new QueuesSource(topics, queues, tenant, { minIntervalMs, pollMs }), signal);
    },
    graphProgress({ tenant }, graphId, { minIntervalMs = 250, untilTerminal = true, signal } = {}) {
      return open(tenant, new GraphSource(graphs, { tenant, graphId }, { minIntervalMs, untilTerminal }), signal);
    },
    stats() {
      const followed = allTopics().length;
      const { rows, events, heads, pulses } = readers.counts;
      return {
        streams: streams.size,
        topics: followed,
        tenants: feeds.size,
        subscriptions: shards.size + feeds.size,
        reads: { rows, events, heads, pulses },
      };
    },
    async close() {
      closed = true;
      offState();
      for (const stream of [...streams]) void stream.return();
      poller.stop();
    },
  };
}
