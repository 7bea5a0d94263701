import type { Client as SocketClient } from 'graphql-ws/client';
import { type GraphQLFault, graphqlError, readAnswer, reasonOf, streamError } from './answers.ts';
import { RequestError } from './errors.ts';
import { openSocket, type SocketOptions } from './socket.ts';
import { pause, retryWaitMs } from './waiting.ts';

/** How a client reaches the service. */
export interface TransportOptions extends SocketOptions {
  /** The GraphQL endpoint, `https://…/graphql`; in a browser a path will do. */
  url: string;
  /** Bearer token; a function is asked at each request and each reconnect. */
  token?: string | (() => string | Promise<string>);
  /** Who acts, while the service's authentication is off. */
  actor?: string;
  /** Default: the global one. */
  fetch?: typeof fetch;
}

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** Further tries when the service is away; only for what may be repeated. Default 0. */
  retries?: number;
}

export interface StreamSink {
  next(data: Record<string, unknown>): void;
  error(error: RequestError): void;
  /** The service ended the stream. */
  complete(): void;
}

/** Sends operations: queries and mutations over HTTP, subscriptions over one WebSocket. */
export interface Transport {
  /** @throws RequestError; the signal's reason when aborted */
  request(
    query: string,
    variables: Record<string, unknown>,
    options?: RequestOptions,
  ): Promise<Record<string, unknown>>;
  /**
   * Subscribes; after a broken connection it subscribes again by itself with `variables` as they are then: a reader
   * that keeps its position in them goes on behind it. Returns the function that ends it.
   */
  subscribe(query: string, variables: Record<string, unknown>, sink: StreamSink): () => void;
  /** Ends every subscription. A second call does nothing. */
  close(): Promise<void>;
}

/** Answers later than this count as none. */
const REQUEST_TIMEOUT_MS = 30_000;

export function createTransport(options: TransportOptions): Transport {
  const send = options.fetch ?? fetch;
  let socket: SocketClient | undefined;
  let closed = false;

  async function credentials(): Promise<Record<string, string>> {
    const token = typeof options.token === 'function' ? await options.token() : options.token;
    return {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(options.actor ? { 'x-waymark-actor': options.actor } : {}),
    };
  }

  async function once(query: string, variables: Record<string, unknown>, signal: AbortSignal | undefined) {
    const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const headers = { 'content-type': 'application/json', accept: 'application/json', ...(await credentials()) };
    let response: Response;
    let text: string;
    try {
      response = await send(options.url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ query, variables }),
        signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      });
      text = await response.text();
    } catch (cause) {
      signal?.throwIfAborted();
      throw new RequestError('UNREACHABLE', `${options.url} cannot be reached: ${reasonOf(cause)}`, { cause });
    }
    return readAnswer(options.url, response.status, text);
  }

  return {
    async request(query, variables, { signal, retries = 0 } = {}) {
      for (let n = 0; ; n++) {
        try {
          return await once(query, variables, signal);
        } catch (error) {
          if (n >= retries || !(error instanceof RequestError) || !error.isUnavailable) throw error;
          await pause(retryWaitMs(n), signal);
        }
      }
    },
    subscribe(query, variables, sink) {
      if (closed) throw clientClosed();
      socket ??= openSocket(options, credentials);
      return socket.subscribe<Record<string, unknown>>(
        { query, variables },
        {
          next: ({ data, errors }) => {
            if (data && !errors) sink.next(data);
            else sink.error(graphqlError((errors ?? []) as readonly GraphQLFault[]));
          },
          error: (error) => sink.error(streamError(error)),
          complete: () => (closed ? sink.error(clientClosed()) : sink.complete()),
        },
      );
    },
    async close() {
      closed = true;
      await socket?.dispose();
    },
  };
}

function clientClosed(): RequestError {
  return new RequestError('CLIENT_CLOSED', 'the client is closed');
}
