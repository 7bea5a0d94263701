import type { Redis } from 'ioredis';
import type { BoundedLog } from './bounded-log.ts';
import type { Subscription } from './channel.ts';
import { type LinkOptions, RedisLink } from './redis-link.ts';

/** Names in one SUBSCRIBE. */
const MAX_NAMES = 500;

interface Wanted {
  readonly onText: (text: string) => void;
  /** Settles `ready`. */
  readonly open: () => void;
}

/**
 * The receiving connection. What is wanted stands in a table of our own, and the server is brought in line with it: at
 * most one SUBSCRIBE and UNSUBSCRIBE under way, whatever changes meanwhile, and everything again on a new connection
 * (the client's own memory of its subscriptions does not survive several failed reconnects).
 */
export class RedisSubscriber {
  readonly #link: RedisLink;
  readonly #say: BoundedLog;
  readonly #onState: (state: 'live' | 'down', error: Error | null) => void;
  readonly #wanted = new Map<string, Wanted>();
  /** What this connection was asked for, and has acknowledged. */
  #told = new Set<string>();
  /** Names for which `#wanted` and `#told` may differ, while there is a connection. */
  #changed = new Set<string>();
  /** What was wanted as the connection came up and is not acknowledged yet. */
  #restoring = new Set<string>();
  #syncing = false;
  #live = false;
  #epoch = 0;

  constructor(
    link: Omit<LinkOptions, 'onUp' | 'onDown'>,
    say: BoundedLog,
    onState: (state: 'live' | 'down', error: Error | null) => void,
  ) {
    this.#say = say;
    this.#onState = onState;
    this.#link = new RedisLink({
      ...link,
      onUp: (client) => this.#up(client),
      onDown: (error) => this.#down(error),
    });
    this.#link.client.on('message', (name: string, text: string) => this.#wanted.get(name)?.onText(text));
  }

  /** Whether everything wanted is subscribed and the connection answers. */
  get live(): boolean {
    return this.#live;
  }

  subscribe(name: string, onText: (text: string) => void): Subscription {
    let open = () => {};
    const ready = new Promise<void>((resolve) => {
      open = resolve;
    });
    const wanted = { onText, open };
    this.#wanted.set(name, wanted);
    if (this.#link.up) this.#change(name);
    else open();
    return {
      ready,
      unsubscribe: () => {
        open();
        if (this.#wanted.get(name) !== wanted) return;
        this.#wanted.delete(name);
        this.#change(name);
      },
    };
  }

  /** Ends the connection. A second call does nothing. */
  async close(): Promise<void> {
    this.#live = false;
    this.#epoch++;
    this.#openAll();
    this.#wanted.clear();
    await this.#link.close();
  }

  #up(client: Redis): void {
    this.#epoch++;
    this.#told = new Set();
    this.#changed = new Set(this.#wanted.keys());
    this.#restoring = new Set(this.#changed);
    void this.#sync(client, this.#epoch);
  }

  #down(error: Error | null): void {
    this.#epoch++;
    this.#live = false;
    this.#openAll();
    this.#onState('down', error);
  }

  #openAll(): void {
    for (const { open } of this.#wanted.values()) open();
  }

  #change(name: string): void {
    if (!this.#link.up) return;
    this.#changed.add(name);
    if (this.#syncing) return;
    this.#syncing = true;
    // Not at once: what comes and goes within one turn costs nothing.
    queueMicrotask(() => void this.#sync(this.#link.client, this.#epoch));
  }

  async #sync(client: Redis, epoch: number): Promise<void> {
    this.#syncing = true;
    try {
      while (this.#epoch === epoch) {
        // What is wanted only since the connection came up has a `ready` of its own to wait for.
        if (!this.#live && this.#restoring.size === 0) {
          this.#live = true;
          this.#onState('live', null);
        }
        if (this.#changed.size === 0) return;
        const names = [...this.#changed].slice(0, MAX_NAMES);
        for (const name of names) this.#changed.delete(name);
        const add = names.filter((name) => this.#wanted.has(name) && !this.#told.has(name));
        const remove = names.filter((name) => !this.#wanted.has(name) && this.#told.has(name));
        await Promise.all([
          add.length > 0 ? client.subscribe(...add) : undefined,
          remove.length > 0 ? client.unsubscribe(...remove) : undefined,
        ]);
        if (this.#epoch !== epoch) return;
        for (const name of add) this.#told.add(name);
        for (const name of remove) this.#told.delete(name);
        for (const name of names) {
          this.#restoring.delete(name);
          if (this.#told.has(name)) this.#wanted.get(name)?.open();
        }
      }
    } catch (error) {
      if (this.#epoch !== epoch) return;
      this.#say('warn', 'subscribe', { err: error }, 'could not subscribe; connecting again');
      this.#link.drop('a subscription was refused');
    } finally {
      if (this.#epoch === epoch) this.#syncing = false;
    }
  }
}
