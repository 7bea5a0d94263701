import type { RequestError } from './errors.ts';

/**
 * How values come: `live` (pushed, over WebSocket or an event stream), `reconnecting` (the connection is being made, or
 * made again), `polling` (read about once a second, since no stream can be opened), `offline` (the service cannot be
 * reached at all; it is tried on).
 */
export type ConnectionState = 'live' | 'reconnecting' | 'polling' | 'offline';

/** One subscription, and what can be read in its place. */
export interface Operation {
  query: string;
  /** Sent at each (re)connect as they are then: a reader that keeps its position in them goes on behind it. */
  variables: Record<string, unknown>;
  /** A reader for a channel that polls; it remembers what it gave. */
  poll(): Poll;
}

export type Ask = (query: string, variables: Record<string, unknown>) => Promise<Record<string, unknown>>;

/** Reads once. @throws RequestError */
export type Poll = (ask: Ask) => Promise<Polled>;

export interface Polled {
  /** In the form of the subscription's own messages; none when nothing has changed. */
  messages: Record<string, unknown>[];
  /** There is more to read at once. */
  more?: boolean;
  /** The subscription would end here. */
  complete?: boolean;
  /** What was read cannot show that nothing has changed, so it is no reason to slow down. */
  blind?: boolean;
}

export interface StreamSink {
  next(data: Record<string, unknown>): void;
  /** Nothing follows. */
  error(error: RequestError): void;
  /** The service ended the stream. */
  complete(): void;
}

/** One way to receive streams. It makes broken connections again by itself, for ever, and reports how it fares. */
export interface Channel {
  /** Returns the function that ends the subscription; nothing is delivered after that. */
  subscribe(operation: Operation, sink: StreamSink): () => void;
  /** Gives up the connections that it has; what is still subscribed connects anew, with new credentials. */
  reset(): void;
  /** Ends everything without a word. It may be used again. */
  close(): void | Promise<void>;
}

export interface ChannelReports {
  /** Values come, or could. */
  opened(): void;
  /** What was open broke. */
  lost(): void;
  /** It could not be opened. `hopeless`: there is no sense in trying again soon. */
  failed(hopeless?: boolean): void;
}

/** Credentials for one request or connection, as headers. */
export type Credentials = () => Promise<Record<string, string>>;
