import { CHANNEL_SHARDS } from '../core/change.ts';
import type { Logger } from '../core/log.ts';
import { boundedLog } from './bounded-log.ts';
import type { LiveChannel, Subscription } from './channel.ts';
import { byShard, type ChannelNames, LOOK, readChanges, readHints } from './messages.ts';

/** What carries texts under names: the part of a live channel that differs between Redis and the process itself. */
export interface Transport {
  /** Sends soon; never waits, never throws, may lose. */
  publish(name: string, text: string): void;
  /** False when it seems that nobody subscribes to `name`; then a short text serves as well as a long one. */
  isHeard(name: string): boolean;
  /** Takes in what is sent under `name`. A name has at most one subscription at a time. */
  subscribe(name: string, onText: (text: string) => void): Subscription;
  readonly state: 'live' | 'down';
  onState(listener: (state: 'live' | 'down') => void): () => void;
  close(): Promise<void>;
}

interface Shared {
  readonly listeners: Set<{ call(value: unknown): void }>;
  readonly subscription: Subscription;
}

/**
 * A live channel over a transport: names, JSON, and one subscription per name whatever the number of listeners. A
 * message is read once for all of them; one that cannot be read is ignored and logged.
 */
export function channelOver(transport: Transport, names: ChannelNames, log: Logger): LiveChannel {
  const say = boundedLog(log);
  const shared = new Map<string, Shared>();

  function listen<T>(name: string, read: (text: string) => T | null, listener: (value: T) => void): Subscription {
    let entry = shared.get(name);
    if (!entry) {
      const listeners: Shared['listeners'] = new Set();
      const onText = (text: string) => {
        const value = read(text);
        if (value === null) {
          say('warn', 'foreign', { channel: name, bytes: text.length }, 'ignored a message that is not ours');
          return;
        }
        for (const each of listeners) each.call(value);
      };
      entry = { listeners, subscription: transport.subscribe(name, onText) };
      shared.set(name, entry);
    }
    const { listeners, subscription } = entry;
    const mine = {
      call(value: unknown) {
        try {
          listener(value as T);
        } catch (error) {
          say('error', 'listener', { channel: name, err: error }, 'a listener of the live channel failed');
        }
      },
    };
    listeners.add(mine);
    return {
      ready: subscription.ready,
      unsubscribe() {
        if (!listeners.delete(mine) || listeners.size > 0) return;
        shared.delete(name);
        subscription.unsubscribe();
      },
    };
  }

  function send(name: string, value: unknown): void {
    try {
      transport.publish(name, JSON.stringify(value));
    } catch (error) {
      say('error', 'publish', { channel: name, err: error }, 'a message could not be written as JSON');
    }
  }

  return {
    publishChanges(changes) {
      for (const group of byShard(changes, (change) => change.jobId)) {
        send(names.changes(group.tenant, group.shard), group.rows);
      }
    },
    publishRows(rows, changesOf) {
      for (const group of byShard(rows, (row) => row.id)) {
        const name = names.changes(group.tenant, group.shard);
        if (transport.isHeard(name)) send(name, changesOf(group.rows));
        else transport.publish(name, LOOK);
      }
    },
    publishReady(hints) {
      if (hints.length > 0) send(names.ready, hints);
    },
    publishNudge(workerId) {
      transport.publish(names.worker(workerId), '');
    },

    onChanges(tenant, shard, listener) {
      const shards = shard === null ? Array.from({ length: CHANNEL_SHARDS }, (_, i) => i) : [shard];
      const parts = shards.map((s) => listen(names.changes(tenant, s), (t) => readChanges(t, tenant, s), listener));
      return {
        ready: Promise.all(parts.map((p) => p.ready)).then(() => undefined),
        unsubscribe: () => {
          for (const part of parts) part.unsubscribe();
        },
      };
    },
    onReady: (listener) => listen(names.ready, readHints, listener),
    onNudge: (workerId, listener) =>
      listen(
        names.worker(workerId),
        () => true,
        () => listener(),
      ),

    get state() {
      return transport.state;
    },
    onState: (listener) => transport.onState(listener),
    close: () => transport.close(),
  };
}

/** Listeners of a state. One that throws is given to `failed`; the others are called all the same. */
export class StateListeners {
  readonly #listeners = new Set<{ call: (state: 'live' | 'down') => void }>();
  readonly #failed: (error: unknown) => void;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  add(listener: (state: 'live' | 'down') => void): () => void {
    const mine = { call: listener };
    this.#listeners.add(mine);
    return () => void this.#listeners.delete(mine);
  }

  call(state: 'live' | 'down'): void {
    for (const listener of this.#listeners) {
      try {
        listener.call(state);
      } catch (error) {
        this.#failed(error);
      }
    }
  }
}
