import { AsyncResource } from 'node:async_hooks';
import { type Logger, silentLogger } from '../core/log.ts';
import type { LiveChannel } from './channel.ts';
import { channelNames } from './messages.ts';
import { channelOver, type Transport } from './transport.ts';

/**
 * A live channel within this process. It delivers in a later turn of the event loop, never inside the publisher, and
 * what arrives is a copy, as over Redis. Always `live`; after `close` it delivers nothing.
 */
export function createMemoryChannel(options: { log?: Logger } = {}): LiveChannel {
  return channelOver(memoryTransport(), channelNames(), options.log ?? silentLogger);
}

function memoryTransport(): Transport {
  const subscriptions = new Map<string, (text: string) => void>();
  let queue: { name: string; text: string }[] = [];
  let closed = false;

  // Listeners run for themselves, not on behalf of whoever happened to publish (or of a transaction open there).
  const deliver = AsyncResource.bind(() => {
    const batch = queue;
    queue = [];
    for (const { name, text } of batch) subscriptions.get(name)?.(text);
  });

  return {
    publish(name, text) {
      // Who subscribes after this call has no claim to the message: without a subscription it goes nowhere.
      if (closed || !subscriptions.has(name)) return;
      if (queue.push({ name, text }) === 1) setImmediate(deliver);
    },
    isHeard: (name) => subscriptions.has(name),
    subscribe(name, onText) {
      if (!closed) subscriptions.set(name, onText);
      return {
        ready: Promise.resolve(),
        unsubscribe() {
          if (subscriptions.get(name) === onText) subscriptions.delete(name);
        },
      };
    },
    state: 'live',
    onState: () => () => {},
    async close() {
      closed = true;
      queue = [];
      subscriptions.clear();
    },
  };
}
