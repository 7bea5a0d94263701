import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { CloseCode, GRAPHQL_TRANSPORT_WS_PROTOCOL, makeServer } from 'graphql-ws';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Logger } from '../core/log.ts';
import type { Viewer } from '../schema/context.ts';
import { ACTOR_HEADER, viewerOf } from './actor.ts';
import type { SocketOperations } from './graphql.ts';

export interface SocketLimits {
  /** Bytes of one message. */
  messageBytes: number;
  /** Operations of one socket at once. */
  operations: number;
  /** Time for `connection_init`, in milliseconds. */
  initMs: number;
  /** How often the other side is asked for a sign of life; without one until the next time it is cut off. */
  pingMs: number;
}

export const DEFAULT_SOCKET_LIMITS: SocketLimits = {
  messageBytes: 256 * 1024,
  operations: 64,
  initMs: 3_000,
  pingMs: 12_000,
};

/** Close code "service restart": clients come back by themselves. */
const RESTART = 1012;
/** What is given to clients to close, before they are cut off. */
const CLOSE_MS = 1_000;

interface Extra {
  request: IncomingMessage;
  viewer?: Viewer;
}

export interface Sockets {
  /** Takes over an upgrade request that was let in. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Open sockets. */
  count(): number;
  /** Tells all clients to come back later, then cuts off those that stay. */
  close(): Promise<void>;
}

/**
 * GraphQL over WebSocket (graphql-transport-ws). A failing operation gives an `error` message and leaves the socket
 * and its other operations alone; only a breach of the protocol closes it.
 */
export function createSockets(operations: SocketOperations, limits: SocketLimits, log: Logger): Sockets {
  const wss = new WebSocketServer({
    noServer: true,
    maxPayload: limits.messageBytes,
    perMessageDeflate: false,
    handleProtocols: (protocols) =>
      protocols.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false,
  });

  const protocol = makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: limits.initMs,
    onConnect: ({ connectionParams, extra }) => {
      const actor = connectionParams?.[ACTOR_HEADER] ?? extra.request.headers[ACTOR_HEADER];
      const viewer = viewerOf(actor);
      if (!viewer) return false;
      extra.viewer = viewer;
      return true;
    },
    onSubscribe: async ({ subscriptions, extra }, _id, payload) => {
      // This one is counted among them.
      if (Object.keys(subscriptions).length > limits.operations) return operations.limitReached(limits.operations);
      return operations.prepare(extra.viewer as Viewer, payload);
    },
    execute: (args) => operations.execute(args),
    subscribe: (args) => operations.subscribe(args),
  });

  wss.on('connection', (socket: WebSocket, request: IncomingMessage) => {
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send: (data) => sendTo(socket, data),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (handle) =>
          socket.on('message', (data) => {
            handle(String(data)).catch((error: unknown) => {
              // The client is gone meanwhile: nobody is left to be told.
              if (socket.readyState !== socket.OPEN) return;
              log.error({ err: error }, 'a message of a socket could not be handled');
              socket.close(CloseCode.InternalServerError, 'Internal server error');
            });
          }),
      },
      { request },
    );
    const pings = keepAlive(socket, limits.pingMs);
    socket.on('error', (error) => log.debug({ err: error }, 'a socket failed'));
    socket.once('close', (code, reason) => {
      clearInterval(pings);
      closed(code, String(reason)).catch((error: unknown) => {
        log.error({ err: error }, 'a socket could not be cleaned up');
      });
    });
  });

  return {
    accept: (request, socket, head) => {
      wss.handleUpgrade(request, socket, head, (client) => wss.emit('connection', client, request));
    },
    count: () => wss.clients.size,
    async close() {
      const clients = [...wss.clients];
      const gone = Promise.all(clients.map((client) => new Promise((resolve) => client.once('close', resolve))));
      for (const client of clients) client.close(RESTART, 'Service restart');
      const timer = setTimeout(() => {
        for (const client of clients) client.terminate();
      }, CLOSE_MS);
      await gone;
      clearTimeout(timer);
      wss.close();
    },
  };
}

/**
 * Sends, and gives a promise where the kernel does not take it at once, which resolves when it has: the source is not pulled
 * faster than the client reads. What cannot be sent is dropped: the socket closes then, and its operations with it.
 */
function sendTo(socket: WebSocket, data: string): Promise<void> | undefined {
  if (socket.readyState !== socket.OPEN) return;
  let sent = (): void => {};
  socket.send(data, () => sent());
  if (socket.bufferedAmount === 0) return;
  return new Promise((resolve) => {
    sent = resolve;
  });
}

function keepAlive(socket: WebSocket, everyMs: number): NodeJS.Timeout {
  let alive = true;
  socket.on('pong', () => {
    alive = true;
  });
  return setInterval(() => {
    if (!alive) return socket.terminate();
    alive = false;
    socket.ping();
  }, everyMs);
}
