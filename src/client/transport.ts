import { readAnswer, reasonOf } from './answers.ts';
import type { ConnectionState, Operation, StreamSink } from './channel.ts';
import { RequestError } from './errors.ts';
import { createLive, type LiveOptions } from './live.ts';
import { pause, retryWaitMs } from './waiting.ts';

/** How a client reaches the service. */
export interface TransportOptions extends LiveOptions {
  /** The GraphQL endpoint, `https://…/graphql`; in a browser a path will do. */
  url: string;
  /** Bearer token; a function is asked at each request and each (re)connect, and again when its token was refused. */
  token?: string | (() => string | Promise<string>);
  /** Who acts, while the service's authentication is off. */
  actor?: string;
  /** Default: the global one. */
  fetch?: typeof fetch;
  /** Told of each change of the connection, first when it is made. */
  onConnection?: (state: ConnectionState) => void;
}

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** Further tries when the service is away; only for what may be repeated. Default 0. */
  retries?: number;
}

/** Sends operations: queries and mutations over HTTP, subscriptions over the best transport there is. */
export interface Transport {
  /** @throws RequestError; the signal's reason when aborted */
  request(
    query: string,
    variables: Record<string, unknown>,
    options?: RequestOptions,
  ): Promise<Record<string, unknown>>;
  /**
   * Subscribes; after a broken connection it subscribes again by itself, over another transport if need be. Returns the
   * function that ends it.
   */
  subscribe(operation: Operation, sink: StreamSink): () => void;
  connection: {
    /** `reconnecting` before the first stream. */
    state(): ConnectionState;
    /** Told of each change; returns the function that ends that. */
    listen(listener: (state: ConnectionState) => void): () => void;
  };
  /** Ends every subscription. A second call does nothing. */
  close(): Promise<void>;
}

/** Answers later than this count as none. */
const REQUEST_TIMEOUT_MS = 30_000;

export function createTransport(options: TransportOptions): Transport {
  const send = options.fetch ?? fetch;
  const isRenewable = typeof options.token === 'function';
  const listeners = new Set<(state: ConnectionState) => void>();
  if (options.onConnection) listeners.add(options.onConnection);
  let told: ConnectionState | undefined;

  function tell(state: ConnectionState): void {
    if (state === told) return;
    told = state;
    for (const listener of [...listeners]) listener(state);
  }

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

  async function request(
    query: string,
    variables: Record<string, unknown>,
    { signal, retries = 0 }: RequestOptions = {},
  ): Promise<Record<string, unknown>> {
    let renewed = !isRenewable;
    for (let n = 0; ; ) {
      try {
        return await once(query, variables, signal);
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        // Refused before anything was done: the next token may be a good one.
        const isRefused = error.code === 'UNAUTHENTICATED' && !renewed;
        if (isRefused) renewed = true;
        else if (n >= retries || !error.isUnavailable) throw error;
        else await pause(retryWaitMs(n++), signal);
      }
    }
  }

  const live = createLive(options, { fetch: send, credentials, isRenewable, request, tell });

  return {
    request,
    subscribe: live.subscribe,
    connection: {
      state: () => told ?? 'reconnecting',
      listen(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    close: live.close,
  };
}
