import { WebSocket } from 'ws';
import { type Cursor, DOCUMENTS, type LiveField } from '../lib/live-protocol.ts';

/** What a message carries: the number of a fact or job, and the moment before it was handed to be published. */
export interface Arrival {
  number: number;
  sentAt: number;
}

interface Data {
  jobEvents?: { seq: number; key?: string };
  jobsChanged?: { reset: boolean; jobs: { tags: string[] }[] };
}

/**
 * One subscriber on a socket of its own: the protocol and nothing else, so that the clients leave the processor to the
 * server. It fails on any fact that is missing, repeated or out of order, and on a job that a list is told of twice.
 */
export class LiveSocket {
  readonly #socket: WebSocket;
  readonly #onArrivals: (arrivals: readonly Arrival[]) => void;
  readonly #seen = new Set<number>();
  #last: number;
  #greeted = false;

  private constructor(socket: WebSocket, after: number, onArrivals: (arrivals: readonly Arrival[]) => void) {
    this.#socket = socket;
    this.#last = after;
    this.#onArrivals = onArrivals;
  }

  /** Resolves after the first message, which says that the server has it among its subscribers. */
  static open(
    url: string,
    field: LiveField,
    cursor: Cursor | undefined,
    onArrivals: (arrivals: readonly Arrival[]) => void,
    onFailure: (error: Error) => void,
  ): Promise<LiveSocket> {
    const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws', { perMessageDeflate: false });
    const live = new LiveSocket(socket, cursor?.after ?? 0, onArrivals);
    return new Promise((resolve) => {
      socket.on('open', () => socket.send('{"type":"connection_init"}'));
      socket.on('error', onFailure);
      socket.on('close', (code) => onFailure(new Error(`the server closed a socket with ${code}`)));
      socket.on('message', (text) => {
        const message = JSON.parse(String(text)) as { type: string; payload: { data?: Data } };
        if (message.type === 'connection_ack') {
          const payload = { query: DOCUMENTS[field], variables: cursor ?? {} };
          socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
        } else if (message.type === 'next' && message.payload.data) {
          try {
            live.#take(message.payload.data);
          } catch (error) {
            onFailure(error as Error);
          }
          resolve(live);
        } else {
          onFailure(new Error(`a subscriber got ${String(text).slice(0, 300)}`));
        }
      });
    });
  }

  /** Ends it, and resolves when the socket is closed. */
  close(): Promise<void> {
    this.#socket.removeAllListeners('close').removeAllListeners('message');
    return new Promise((resolve) => {
      this.#socket.once('close', () => resolve());
      this.#socket.close(1000);
    });
  }

  #take({ jobEvents, jobsChanged }: Data): void {
    const isGreeting = !this.#greeted;
    this.#greeted = true;
    if (jobEvents) {
      const { seq, key = '' } = jobEvents;
      if (seq !== this.#last + 1) throw new Error(`a subscriber got event ${seq} after ${this.#last}`);
      this.#last = seq;
      if (!isGreeting) this.#onArrivals([{ number: seq, sentAt: Number(key) }]);
    } else if (jobsChanged && !isGreeting) {
      if (jobsChanged.reset) throw new Error('a list was told that changes may be missing');
      this.#onArrivals(jobsChanged.jobs.map((job) => this.#takeJob(job)));
    }
  }

  #takeJob({ tags: [tag = ''] }: { tags: string[] }): Arrival {
    const [number = Number.NaN, sentAt = Number.NaN] = tag.split('.').map(Number);
    if (this.#seen.has(number)) throw new Error(`a list was told twice of job ${number}`);
    this.#seen.add(number);
    return { number, sentAt };
  }
}
