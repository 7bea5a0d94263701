import type { Channel, ConnectionState, Credentials, Operation, StreamSink } from './channel.ts';
import { durationToMs } from './duration.ts';
import { RequestError } from './errors.ts';
import { createEventStreamChannel } from './event-stream.ts';
import { createLadder, type Way } from './ladder.ts';
import { createPollingChannel, type Request } from './polling.ts';
import { createSocketChannel, hasWebSocket, type SocketOptions } from './socket.ts';

export interface LiveOptions extends SocketOptions {
  /** How streams are received. Default `auto`: the first that can be opened of WebSocket, event streams and polling. */
  transport?: 'auto' | Way;
  /**
   * How long `auto` stays with a transport that is not the best one before it tries the better ones again; twice as long
   * after each time in vain, up to ten minutes. Milliseconds or a duration. Default `"30s"`.
   */
  retryTransportAfter?: string | number;
}

interface Subscription {
  operation: Operation;
  sink: StreamSink;
  stop(): void;
  /** Tells late words of a channel that was left from those of the one in use. */
  turn: number;
  /** It was refused, and tried again with credentials asked for anew. */
  renewed: boolean;
}

export interface Live {
  /** @throws RequestError NO_WEBSOCKET, CLIENT_CLOSED */
  subscribe(operation: Operation, sink: StreamSink): () => void;
  close(): Promise<void>;
}

export interface LiveDeps {
  fetch: typeof fetch;
  credentials: Credentials;
  /** Whether asking again for credentials may give others. */
  isRenewable: boolean;
  /** For polling. */
  request: Request;
  tell(state: ConnectionState): void;
}

/** Browsers open six connections to a host without HTTP/2: more streams would leave none for requests. */
const BROWSER_STREAMS = 4;

/**
 * All streams of a client, over the best transport there is. When that changes they move with it, and go on behind what
 * they have.
 */
export function createLive(options: LiveOptions, deps: LiveDeps): Live {
  const { transport = 'auto' } = options;
  const canSocket = hasWebSocket(options);
  const subscriptions = new Set<Subscription>();
  let closed = false;

  const ladder = createLadder({
    ways: transport !== 'auto' ? [transport] : canSocket ? ['ws', 'sse', 'poll'] : ['sse', 'poll'],
    retryAfterMs: durationToMs(options.retryTransportAfter ?? 30_000),
    channel: (way) => channels[way],
    tell: deps.tell,
    moved() {
      for (const subscription of subscriptions) reopen(subscription);
    },
  });
  const channels = {
    ws: createSocketChannel(options, deps.credentials, ladder.reports('ws')),
    sse: createEventStreamChannel({ url: options.url, fetch: deps.fetch }, deps.credentials, ladder.reports('sse')),
    poll: createPollingChannel(deps.request, ladder.reports('poll')),
  };
  const maxStreams = 'document' in globalThis ? BROWSER_STREAMS : Number.POSITIVE_INFINITY;

  function channelNow(): Channel {
    const way = ladder.current();
    return way === 'sse' && transport === 'auto' && channels.sse.count() >= maxStreams ? channels.poll : channels[way];
  }

  function open(subscription: Subscription): void {
    const { operation, sink } = subscription;
    const turn = ++subscription.turn;
    const isCurrent = () => turn === subscription.turn;
    const channel = channelNow();
    subscription.stop = channel.subscribe(operation, {
      next(data) {
        if (!isCurrent()) return;
        subscription.renewed = false;
        sink.next(data);
      },
      error(error) {
        if (!isCurrent()) return;
        if (error.code === 'UNAUTHENTICATED' && deps.isRenewable && !subscription.renewed) {
          subscription.renewed = true;
          // What else this connection carries was let in with the same credentials.
          channel.reset();
          return reopen(subscription);
        }
        if (error.code === 'CONNECTION_CLOSED' && ladder.descend()) return;
        forget(subscription);
        sink.error(error);
      },
      complete() {
        if (!isCurrent()) return;
        forget(subscription);
        sink.complete();
      },
    });
  }

  function reopen(subscription: Subscription): void {
    subscription.turn++;
    subscription.stop();
    open(subscription);
  }

  function forget(subscription: Subscription): void {
    subscription.turn++;
    subscriptions.delete(subscription);
    ladder.setBusy(subscriptions.size > 0);
  }

  return {
    subscribe(operation, sink) {
      if (closed) throw clientClosed();
      if (transport === 'ws' && !canSocket) throw noWebSocket();
      const subscription: Subscription = { operation, sink, turn: 0, renewed: false, stop() {} };
      subscriptions.add(subscription);
      ladder.setBusy(true);
      open(subscription);
      return () => {
        forget(subscription);
        subscription.stop();
      };
    },
    async close() {
      closed = true;
      for (const subscription of [...subscriptions]) {
        forget(subscription);
        subscription.stop();
        subscription.sink.error(clientClosed());
      }
      await Promise.all(Object.values(channels).map((channel) => channel.close()));
    },
  };
}

function clientClosed(): RequestError {
  return new RequestError('CLIENT_CLOSED', 'the client is closed');
}

function noWebSocket(): RequestError {
  const hint =
    "pass one as createClient({ webSocket }), such as `WebSocket` of the package 'ws', or leave `transport` out";
  return new RequestError('NO_WEBSOCKET', `this runtime has no WebSocket: ${hint}`);
}
