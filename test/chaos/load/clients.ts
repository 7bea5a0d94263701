import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { createClient, type WaymarkClient } from '../../../src/client/index.ts';
import type { ErrorBook } from './error-book.ts';
import type tasks from './tasks.ts';

export type Client = WaymarkClient<typeof tasks>;

/** One client per API. What the client library heals by itself is noted, too: errors that came over its socket. */
export function openClients(urls: readonly string[], errors: ErrorBook): Client[] {
  return urls.map((url, api) => {
    class WatchedSocket extends WebSocket {
      constructor(address: string | URL, protocols?: string | string[]) {
        super(address, protocols);
        this.on('message', (data) => {
          const { type, payload } = JSON.parse(String(data));
          const sent = type === 'error' ? payload : type === 'next' ? (payload.errors ?? []) : [];
          for (const error of sent) errors.addSent('watch over a socket', api, error);
        });
      }
    }
    return createClient<typeof tasks>({ url: `${url}/graphql`, webSocket: WatchedSocket });
  });
}

/** No answer for so long is like no answer; the next API is asked. */
const ANSWER_MS = 8_000;

/** Wait before the n-th repeat (0, 1, …), spread: hundreds of clients come back to a service that has just started. */
export function repeatWaitMs(n: number): number {
  return Math.min(2_000, 200 * 2 ** n) * (0.5 + Math.random() / 2);
}

/** Asks until an answer comes, of one API and the other in turn, and notes each error on the way. */
export async function askUntilAnswered<D>(
  clients: readonly Client[],
  errors: ErrorBook,
  ask: { doing: string; first?: number; query: string; variables: Record<string, unknown> },
): Promise<D> {
  for (let n = 0; ; n++) {
    const api = ((ask.first ?? 0) + n) % clients.length;
    const client = clients[api] as Client;
    try {
      return await client.request<D>(ask.query, ask.variables, { signal: AbortSignal.timeout(ANSWER_MS) });
    } catch (error) {
      errors.add(ask.doing, api, error);
    }
    await sleep(repeatWaitMs(n));
  }
}
