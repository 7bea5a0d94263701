import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { within } from '../support/eventually.ts';
import type { Answer } from './service.ts';

/** A message of graphql-transport-ws. */
export interface SocketMessage {
  type: string;
  id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into payloads of any shape
  payload?: any;
}

/**
 * A bare WebSocket client: it queues what comes before anybody waits for it, and does nothing by itself, so that a test
 * can break the protocol.
 */
export class SocketClient {
  readonly socket: WebSocket;
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #messages: SocketMessage[] = [];
  #wake: (() => void) | undefined;

  constructor(url: string, options: { origin?: string; headers?: Record<string, string>; protocol?: string } = {}) {
    const { protocol = 'graphql-transport-ws', ...rest } = options;
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, protocol, rest);
    this.socket.on('message', (data) => {
      this.#messages.push(JSON.parse(String(data)));
      this.#wake?.();
    });
    this.closed = new Promise((resolve) => {
      this.socket.once('close', (code, reason) => resolve({ code, reason: String(reason) }));
    });
    this.socket.on('error', () => {});
    onTestFinished(() => this.socket.terminate());
  }

  /** Opens, says hello and waits for the answer. */
  async start(connectionParams?: Record<string, unknown>): Promise<this> {
    await once(this.socket, 'open');
    this.send({ type: 'connection_init', payload: connectionParams });
    await this.next((m) => m.type === 'connection_ack');
    return this;
  }

  send(message: object | string): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  subscribe(id: string, query: string, variables?: Record<string, unknown>): void {
    this.send({ id, type: 'subscribe', payload: { query, variables } });
  }

  /** The first message that has come, or comes, and fits; it is taken out. */
  next(fits: (message: SocketMessage) => boolean = () => true): Promise<SocketMessage> {
    const search = async (): Promise<SocketMessage> => {
      for (;;) {
        const index = this.#messages.findIndex(fits);
        if (index >= 0) return this.#messages.splice(index, 1)[0] as SocketMessage;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    };
    return within(10_000, search(), 'the awaited message');
  }

  /** All messages of an operation up to its end: `complete` or `error`. */
  async all(id: string): Promise<SocketMessage[]> {
    const found: SocketMessage[] = [];
    for (;;) {
      const message = await this.next((m) => m.id === id);
      found.push(message);
      if (message.type === 'complete' || message.type === 'error') return found;
    }
  }
}

/** An event stream, read message by message. */
export class EventStreamClient implements AsyncIterable<Answer | 'complete' | 'ping'> {
  readonly response: Response;
  readonly #abort: AbortController;

  constructor(response: Response, abort: AbortController) {
    this.response = response;
    this.#abort = abort;
  }

  /** Hangs up. */
  abort(): void {
    this.#abort.abort();
  }

  /** Values up to `complete`. */
  async values(): Promise<Answer[]> {
    const values: Answer[] = [];
    for await (const message of this) {
      if (message === 'complete') return values;
      if (message !== 'ping') values.push(message);
    }
    throw new Error('the stream was cut');
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Answer | 'complete' | 'ping'> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of this.response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const fields = block.split('\n');
        if (fields.every((line) => line.startsWith(':'))) yield 'ping';
        else if (fields.includes('event: complete')) yield 'complete';
        else yield JSON.parse(fields.find((line) => line.startsWith('data: '))?.slice(6) ?? 'null');
      }
    }
  }
}

/** Opens an event stream by POST, as graphql-sse and curl do. */
export async function openEventStream(
  url: string,
  query: string,
  variables?: Record<string, unknown>,
): Promise<EventStreamClient> {
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query, variables }),
    signal: abort.signal,
  });
  return new EventStreamClient(response, abort);
}
