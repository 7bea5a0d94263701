import { Redis, type RedisOptions } from 'ioredis';

/** Opens a connection. The seam for Sentinel and others: whatever it gives must reconnect by the given options. */
export type ConnectRedis = (url: string, options: RedisOptions) => Redis;

export const connectRedis: ConnectRedis = (url, options) => new Redis(url, options);

export interface LinkOptions {
  url: string;
  /** Shown in `CLIENT LIST`. */
  name: string;
  connect?: ConnectRedis;
  /** A ping goes out this often… */
  pingMs?: number;
  /** …and a link that has not answered within this time is dropped and opened anew. */
  timeoutMs?: number;
  /** The connection can be used now; nothing is left of what was asked of an earlier one. */
  onUp(client: Redis): void;
  /** It can no longer be used; or (once, at the start) it could not be opened. */
  onDown(error: Error | null): void;
}

const MAX_DELAY_MS = 1_000;
/** A connection that lasted at least this long was a good one: the next loss starts with short delays again. */
const GOOD_AFTER_MS = 5_000;

/**
 * One connection to Redis that is kept for ever: reopened with capped, jittered delays, watched for silence, and never
 * holding commands back. What cannot be sent now fails now.
 */
export class RedisLink {
  readonly client: Redis;
  readonly #options: Required<Pick<LinkOptions, 'pingMs' | 'timeoutMs'>> & LinkOptions;
  readonly #watch: NodeJS.Timeout;
  #up = false;
  #everTold = false;
  #closed = false;
  #upAt = 0;
  #greeting: NodeJS.Timeout | undefined;
  #failures = 0;
  #pinging = false;
  #lastError: Error | null = null;

  constructor(options: LinkOptions) {
    this.#options = { pingMs: 2_500, timeoutMs: 2_000, ...options };
    this.client = (options.connect ?? connectRedis)(options.url, {
      connectionName: options.name,
      enableOfflineQueue: false,
      autoResubscribe: false,
      autoResendUnfulfilledCommands: false,
      // Zero makes a closed connection reject what is under way; with any other value it may never settle.
      maxRetriesPerRequest: 0,
      connectTimeout: 5_000,
      disconnectTimeout: 200,
      retryStrategy: () => this.#nextDelay(),
    });
    this.client.on('connect', () => this.#greet());
    this.client.on('ready', () => this.#ready());
    this.client.on('close', () => this.#lost());
    this.client.on('error', (error: Error) => {
      this.#lastError = error;
    });
    this.#watch = setInterval(() => this.#look(), this.#options.pingMs);
  }

  get up(): boolean {
    return this.#up && this.client.status === 'ready';
  }

  /** Closes the connection and opens another. */
  drop(reason: string): void {
    if (this.#closed) return;
    this.#lastError = new Error(reason);
    this.client.disconnect(true);
  }

  /** Lets what was sent go out, for a moment, and ends the connection. A second call does nothing. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#watch);
    clearTimeout(this.#greeting);
    if (this.up) {
      const late = new Promise((resolve) => setTimeout(resolve, 500).unref());
      await Promise.race([this.client.quit().catch(() => undefined), late]);
    }
    this.#up = false;
    this.client.disconnect();
  }

  #ready(): void {
    if (this.#closed || this.client.status !== 'ready') return;
    this.#up = true;
    this.#everTold = true;
    this.#pinging = false;
    this.#upAt = performance.now();
    this.#options.onUp(this.client);
  }

  #lost(): void {
    const tell = this.#up || !this.#everTold;
    this.#up = false;
    this.#everTold = true;
    if (tell && !this.#closed) this.#options.onDown(this.#lastError);
  }

  #nextDelay(): number {
    if (this.#upAt > 0 && performance.now() - this.#upAt >= GOOD_AFTER_MS) this.#failures = 0;
    this.#upAt = 0;
    const delay = Math.min(MAX_DELAY_MS, 50 * 2 ** Math.min(this.#failures++, 10));
    return Math.round(delay * (0.5 + Math.random() / 2));
  }

  #look(): void {
    const { status } = this.client;
    if (status === 'ready') {
      this.#ping();
    } else if (status === 'end') {
      // The client gives up for good when a connection is dropped before its socket was made.
      this.client.connect().catch(() => undefined);
    }
  }

  /** Connected is not greeted: a server that loads its data, or a dead link behind a proxy, may never say a word. */
  #greet(): void {
    clearTimeout(this.#greeting);
    this.#greeting = setTimeout(() => {
      if (this.client.status === 'connect') this.drop('the server does not answer');
    }, this.#options.timeoutMs);
  }

  #ping(): void {
    if (this.#pinging) return;
    this.#pinging = true;
    let answered = false;
    const late = setTimeout(() => {
      // A loop that was blocked finds the timer before the answer: what has arrived by now is read first.
      setImmediate(() => {
        if (!answered) this.drop('no answer to a ping');
      });
    }, this.#options.timeoutMs);
    const settled = () => {
      answered = true;
      this.#pinging = false;
      clearTimeout(late);
    };
    this.client.ping().then(settled, settled);
  }
}
