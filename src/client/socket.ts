import { createClient as createSocketClient, type Client as SocketClient } from 'graphql-ws/client';
import { RequestError } from './errors.ts';
import { retryWaitMs } from './waiting.ts';

export interface SocketOptions {
  /** The GraphQL endpoint, as for HTTP. */
  url: string;
  /** A WebSocket class, where the runtime has none (Node before 22: pass `WebSocket` of `ws`). */
  webSocket?: unknown;
  /** Told when live updates come (`live`), or the connection broke and is being made again (`reconnecting`). */
  onConnection?: (state: 'live' | 'reconnecting') => void;
}

/** A connection that is not acknowledged by then is tried again. */
const ACK_MS = 30_000;
/** A connection silent for this long is asked for a sign of life, and given up when none comes within PONG_MS. */
const PING_MS = 10_000;
const PONG_MS = 5_000;

/**
 * The one WebSocket of a client: opened by the first subscription, closed a moment after the last, made again for ever
 * when it breaks.
 * @throws RequestError NO_WEBSOCKET
 */
export function openSocket(options: SocketOptions, credentials: () => Promise<Record<string, string>>): SocketClient {
  if (!options.webSocket && typeof WebSocket === 'undefined') {
    const hint = "pass one as createClient({ webSocket }), such as `WebSocket` of the package 'ws'";
    throw new RequestError('NO_WEBSOCKET', `live updates need a WebSocket and this runtime has none: ${hint}`);
  }
  let pong: ReturnType<typeof setTimeout> | undefined;
  let told: 'live' | 'reconnecting' | undefined;
  const tell = (state: 'live' | 'reconnecting') => {
    if (state !== told) options.onConnection?.(state);
    told = state;
  };
  const socket = createSocketClient({
    url: webSocketUrl(options.url),
    ...(options.webSocket ? { webSocketImpl: options.webSocket } : {}),
    connectionParams: credentials,
    lazyCloseTimeout: 1_000,
    retryAttempts: Number.POSITIVE_INFINITY,
    retryWait: (n) => new Promise((resolve) => setTimeout(resolve, retryWaitMs(n))),
    // A refused connection is an error event and no close event; it too is only a matter of time.
    shouldRetry: () => true,
    keepAlive: PING_MS,
    connectionAckWaitTimeout: ACK_MS,
    on: {
      connected: () => tell('live'),
      // graphql-ws only sends pings: a half-open connection would be believed for ever.
      ping: (received) => {
        if (!received) pong = setTimeout(() => socket.terminate(), PONG_MS);
      },
      pong: (received) => {
        if (received) clearTimeout(pong);
      },
      error: () => tell('reconnecting'),
      closed: (event) => {
        clearTimeout(pong);
        if ((event as { code?: number }).code !== 1000) tell('reconnecting');
      },
    },
  });
  return socket;
}

function webSocketUrl(url: string): string {
  const base = (globalThis as { location?: { href: string } }).location?.href;
  const absolute = new URL(url, base);
  absolute.protocol = absolute.protocol === 'https:' ? 'wss:' : 'ws:';
  return absolute.href;
}
