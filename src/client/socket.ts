import { createClient as createSocketClient, type Client as SocketClient } from 'graphql-ws/client';
import { type GraphQLFault, graphqlError, streamError } from './answers.ts';
import type { Channel, ChannelReports, Credentials } from './channel.ts';
import { retryWaitMs } from './waiting.ts';

export interface SocketOptions {
  /** The GraphQL endpoint, as for HTTP. */
  url: string;
  /** A WebSocket class, where the runtime has none (Node before 22: pass `WebSocket` of `ws`). */
  webSocket?: unknown;
}

/** A connection that is not acknowledged by then is given up. */
const OPEN_MS = 3_000;
/** A connection silent for this long is asked for a sign of life, and given up when none comes within PONG_MS. */
const PING_MS = 10_000;
const PONG_MS = 5_000;
/** Close code of the protocol: the credentials are not accepted. */
const FORBIDDEN = 4403;

export function hasWebSocket(options: SocketOptions): boolean {
  return Boolean(options.webSocket) || typeof WebSocket !== 'undefined';
}

/** All streams over one WebSocket: opened by the first, closed a moment after the last, made again when it breaks. */
export function createSocketChannel(
  options: SocketOptions,
  credentials: Credentials,
  reports: ChannelReports,
): Channel {
  let client: { socket: SocketClient; isOpen(): boolean } | undefined;

  function open() {
    let acknowledged = false;
    let timedOut = false;
    let refusals = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const socket = createSocketClient({
      url: webSocketUrl(options.url),
      webSocketImpl: tolerant(options.webSocket ?? WebSocket),
      connectionParams: credentials,
      lazyCloseTimeout: 1_000,
      retryAttempts: Number.POSITIVE_INFINITY,
      retryWait: (n) => new Promise((resolve) => setTimeout(resolve, retryWaitMs(n))),
      // A refused connection is an error event and no close event; it too is only a matter of time. Refused credentials
      // are asked for once more.
      shouldRetry: (event) => (event as { code?: number }).code !== FORBIDDEN || ++refusals < 2,
      keepAlive: PING_MS,
      on: {
        connecting: () => {
          acknowledged = false;
          timedOut = false;
          clearTimeout(timer);
          timer = setTimeout(() => {
            timedOut = true;
            socket.terminate();
          }, OPEN_MS);
        },
        connected: () => {
          clearTimeout(timer);
          acknowledged = true;
          refusals = 0;
          reports.opened();
        },
        // graphql-ws only sends pings: a half-open connection would be believed for ever.
        ping: (received) => {
          if (!received) timer = setTimeout(() => socket.terminate(), PONG_MS);
        },
        pong: (received) => {
          if (received) clearTimeout(timer);
        },
        closed: (event) => {
          clearTimeout(timer);
          const wasOpen = acknowledged;
          acknowledged = false;
          if ((event as { code?: number }).code === 1000) return;
          if (wasOpen) reports.lost();
          else reports.failed(timedOut);
        },
      },
    });
    return { socket, isOpen: () => acknowledged };
  }

  return {
    subscribe({ query, variables }, sink) {
      client ??= open();
      const stop = client.socket.subscribe<Record<string, unknown>>(
        { query, variables },
        {
          next: ({ data, errors }) => {
            if (data && !errors) sink.next(data);
            else sink.error(graphqlError((errors ?? []) as readonly GraphQLFault[]));
          },
          error: (error) => sink.error(streamError(error)),
          complete: () => sink.complete(),
        },
      );
      // An error and the end behind it often come at once. graphql-ws counts a stream that is stopped between them twice,
      // and then closes the connection under the others, or never.
      return () => queueMicrotask(stop);
    },
    reset: () => client?.socket.terminate(),
    async close() {
      const closing = client;
      // A new one does not wait as long as this one may have come to.
      client = undefined;
      // A connection that is being made has nobody to say goodbye to, and may take its time.
      if (closing?.isOpen()) await closing.socket.dispose();
      else closing?.socket.terminate();
    },
  };
}

type SocketClass = new (
  url: string,
  protocols: string,
) => { addEventListener(type: 'error', listener: () => void): void };

/**
 * graphql-ws takes its listener away from a socket before it closes it. `ws` tells of a connection that is given up while
 * it is being made by an error, and one that nobody listens to ends the process.
 */
function tolerant(given: unknown): SocketClass {
  return class extends (given as SocketClass) {
    constructor(url: string, protocols: string) {
      super(url, protocols);
      this.addEventListener('error', () => {});
    }
  };
}

function webSocketUrl(url: string): string {
  const base = (globalThis as { location?: { href: string } }).location?.href;
  const absolute = new URL(url, base);
  absolute.protocol = absolute.protocol === 'https:' ? 'wss:' : 'ws:';
  return absolute.href;
}
