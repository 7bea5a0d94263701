import type { BoundedLog } from './bounded-log.ts';
import { type LinkOptions, RedisLink } from './redis-link.ts';

/** What may wait in this process to be sent, or for its acknowledgement, in characters. What is beyond is dropped. */
const MAX_UNDER_WAY = 8 * 1024 * 1024;
/** A listener that spoke up is believed this long: in a cluster Redis counts only the subscribers of one node. */
const KEEP_MS = 60_000;
/** Names that are kept in mind; with more of them all are forgotten. */
const MAX_NAMES = 10_000;

/**
 * Sends without waiting: what is published within one turn of the event loop goes out as one pipeline. While Redis is
 * away, or takes in less than is published, messages are dropped and counted; afterwards `missed` is told once, so
 * that readers elsewhere look for themselves.
 */
export class RedisPublisher {
  readonly #link: RedisLink;
  readonly #missedName: string;
  readonly #say: BoundedLog;
  /** Names whose last message reached nobody, as Redis said. */
  readonly #unheard = new Set<string>();
  /** Names of which a listener told, and until when that is believed. */
  readonly #kept = new Map<string, number>();
  #queue: [name: string, text: string][] = [];
  #queued = 0;
  #underWay = 0;
  #epoch = 0;
  #dropped = 0;
  #untold = 0;
  #closed = false;

  constructor(link: Omit<LinkOptions, 'onUp' | 'onDown'>, missedName: string, say: BoundedLog) {
    this.#missedName = missedName;
    this.#say = say;
    this.#link = new RedisLink({
      ...link,
      onUp: () => {
        this.#epoch++;
        this.#underWay = 0;
        this.#unheard.clear();
        this.#tellMissed();
      },
      // What was under way is rejected, and counted there.
      onDown: () => {},
    });
  }

  /** Messages that were not sent since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  publish(name: string, text: string): void {
    if (this.#closed) return;
    if (!this.#link.up || this.#queued + this.#underWay + text.length > MAX_UNDER_WAY) {
      this.#drop(1);
      return;
    }
    this.#queued += text.length;
    if (this.#queue.push([name, text]) === 1) setImmediate(() => this.#flush());
  }

  /** Whether a message under this name may reach somebody. */
  isHeard(name: string): boolean {
    return !this.#unheard.has(name);
  }

  /** Somebody listens under this name, whatever Redis says. */
  keep(name: string): void {
    if (this.#kept.size >= MAX_NAMES) this.#kept.clear();
    this.#kept.set(name, performance.now() + KEEP_MS);
    this.#unheard.delete(name);
  }

  #reached(name: string, receivers: unknown): void {
    if (receivers !== 0) {
      this.#unheard.delete(name);
      return;
    }
    const keptUntil = this.#kept.get(name);
    if (keptUntil !== undefined && performance.now() < keptUntil) return;
    if (keptUntil !== undefined) this.#kept.delete(name);
    if (this.#unheard.size >= MAX_NAMES) this.#unheard.clear();
    this.#unheard.add(name);
  }

  /** Sends what waits and ends the connection. A second call does nothing. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#flush();
    await this.#link.close();
  }

  #flush(): void {
    const batch = this.#queue;
    const size = this.#queued;
    this.#queue = [];
    this.#queued = 0;
    if (batch.length === 0) return;
    if (!this.#link.up) {
      this.#drop(batch.length);
      return;
    }
    const epoch = this.#epoch;
    this.#underWay += size;
    const pipeline = this.#link.client.pipeline();
    for (const [name, text] of batch) pipeline.publish(name, text);
    pipeline.exec().then(
      (results) => {
        const failed = results?.filter(([error]) => error !== null) ?? [];
        results?.forEach(([error, receivers], i) => {
          if (error === null) this.#reached((batch[i] as [string, string])[0], receivers);
        });
        this.#sent(epoch, size, failed.length, failed[0]?.[0] ?? null);
      },
      (error: Error) => this.#sent(epoch, size, batch.length, error),
    );
  }

  #sent(epoch: number, size: number, failed: number, error: Error | null): void {
    if (epoch === this.#epoch) this.#underWay -= size;
    if (failed > 0) {
      this.#drop(failed);
      if (this.#link.up) this.#say('warn', 'publish', { err: error, failed }, 'messages could not be published');
    } else if (this.#untold > 0) {
      this.#tellMissed();
    }
  }

  #drop(count: number): void {
    this.#dropped += count;
    this.#untold += count;
  }

  #tellMissed(): void {
    if (this.#untold === 0) return;
    this.#say('info', 'dropped', { dropped: this.#untold }, 'live messages were dropped; readers are told to look');
    this.#untold = 0;
    this.publish(this.#missedName, '');
  }
}
