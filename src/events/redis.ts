import type { Logger } from '../core/log.ts';
import { boundedLog } from './bounded-log.ts';
import type { LiveChannel } from './channel.ts';
import { channelNames, LOOK } from './messages.ts';
import type { ConnectRedis } from './redis-link.ts';
import { RedisPublisher } from './redis-publisher.ts';
import { RedisSubscriber } from './redis-subscriber.ts';
import { channelOver, StateListeners, type Transport } from './transport.ts';

export interface RedisChannelOptions {
  url: string;
  log: Logger;
  /** First part of every channel's name; deployments that share a Redis need different ones. Default `waymark`. */
  prefix?: string;
  /** How connections are opened. */
  connect?: ConnectRedis;
  /** How often each connection is asked whether it is alive, and how long it may take to answer. */
  pingMs?: number;
  timeoutMs?: number;
}

/** Other processes' notices of lost messages are passed on at most this often. */
const MISSED_EVERY_MS = 1_000;

/**
 * A live channel over Redis pub/sub, with one connection to publish and one to subscribe. Returns at once, whether
 * Redis is there or not: the state is `down` until it is, and again whenever it is away. `onState('live')` is called
 * when everything is subscribed again, and also when another process says that it could not publish for a while.
 */
export function createRedisChannel(options: RedisChannelOptions): LiveChannel {
  const { log, prefix } = options;
  const names = channelNames(prefix);
  const say = boundedLog(log);
  const listeners = new StateListeners((error) => {
    say('error', 'listener', { err: error }, 'a listener of the live channel failed');
  });
  let told: 'live' | 'down' | null = null;

  const link = {
    url: options.url,
    ...(options.connect && { connect: options.connect }),
    ...(options.pingMs !== undefined && { pingMs: options.pingMs }),
    ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
  };
  const publisher = new RedisPublisher({ ...link, name: 'waymark:publish' }, names.missed, say);
  const subscriber = new RedisSubscriber({ ...link, name: 'waymark:subscribe' }, say, (state, error) => {
    if (state === 'down') say('warn', 'down', { err: error }, 'the live channel is down; polling until it is back');
    else say('info', 'live', {}, 'the live channel is up');
    const isNews = told !== state && !(told === null && state === 'down');
    told = state;
    if (isNews) listeners.call(state);
  });
  const missed = everySoOften(MISSED_EVERY_MS, () => {
    if (subscriber.live) listeners.call('live');
  });
  subscriber.subscribe(names.missed, missed.call);
  subscriber.subscribe(names.listening, (name) => publisher.keep(name));

  let closing: Promise<void> | undefined;
  const transport: Transport = {
    publish: (name, text) => publisher.publish(name, text),
    isHeard: (name) => publisher.isHeard(name),
    subscribe(name, onText) {
      // Publishers that believe nobody to listen learn better, at once and whenever they show that they do not know.
      const speakUp = () => {
        if (subscriber.live) publisher.publish(names.listening, name);
      };
      const subscription = subscriber.subscribe(name, (text) => {
        if (text === LOOK) speakUp();
        onText(text);
      });
      void subscription.ready.then(speakUp);
      return subscription;
    },
    get state() {
      return subscriber.live ? 'live' : 'down';
    },
    onState: (listener) => listeners.add(listener),
    close() {
      missed.stop();
      closing ??= Promise.all([publisher.close(), subscriber.close()]).then(() => undefined);
      return closing;
    },
  };
  return channelOver(transport, names, log);
}

/** Calls `fn` at most once per `ms`; of calls that come too early one is made later. */
function everySoOften(ms: number, fn: () => void): { call: () => void; stop: () => void } {
  let last = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  return {
    call() {
      if (timer) return;
      const wait = last + ms - performance.now();
      const run = () => {
        timer = undefined;
        last = performance.now();
        fn();
      };
      if (wait <= 0) run();
      else timer = setTimeout(run, wait);
    },
    stop: () => clearTimeout(timer),
  };
}
