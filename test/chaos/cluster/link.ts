import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How a link treats what goes over it. */
export type Mode =
  | { kind: 'pass' }
  /** Resets every connection, those that are opened meanwhile, too. */
  | { kind: 'cut' }
  /** Takes what is sent and says nothing, on either side. Who was sent something meanwhile never hears of it. */
  | { kind: 'blackhole' }
  | { kind: 'delay'; ms: number }
  | { kind: 'throttle'; bytesPerSecond: number };

interface Pair {
  client: Socket;
  server: Socket;
  /** Something was swallowed: what follows would make no sense. It stays half open until one side closes it. */
  silent: boolean;
  /** A side that has ended in a black hole; the other is told when the hole is gone. */
  orphaned: boolean;
  closed: AbortController;
}

const PIECE_MS = 50;

/** A TCP proxy in front of one port of this machine, whose mode can be changed at any moment. */
export class Link {
  readonly name: string;
  readonly #target: number;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #mode: Mode = { kind: 'pass' };
  #touched = 0;

  private constructor(name: string, target: number) {
    this.name = name;
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async open(name: string, target: number): Promise<Link> {
    const link = new Link(name, target);
    link.#server.listen(0, '127.0.0.1');
    await once(link.#server, 'listening');
    return link;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** How many connections or pieces felt the mode that was set last. */
  get touched(): number {
    return this.#touched;
  }

  set(mode: Mode): void {
    this.#mode = mode;
    if (mode.kind !== 'pass') this.#touched = 0;
    if (mode.kind === 'cut') for (const pair of this.#pairs) this.#reset(pair);
    if (mode.kind === 'pass') for (const pair of this.#pairs) if (pair.orphaned) this.#drop(pair);
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const pair of this.#pairs) this.#drop(pair);
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    client.on('error', () => {});
    if (this.#mode.kind === 'cut') {
      this.#touched++;
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    const pair: Pair = { client, server, silent: false, orphaned: false, closed: new AbortController() };
    this.#pairs.add(pair);
    client.setNoDelay(true);
    server.setNoDelay(true);
    // Nobody listens there: the other side is told as harshly.
    server.on('error', () => this.#ended(pair));
    void this.#pump(pair, client, server);
    void this.#pump(pair, server, client);
  }

  async #pump(pair: Pair, from: Socket, to: Socket): Promise<void> {
    try {
      for await (const chunk of from) {
        for (const piece of this.#pieces(chunk as Buffer)) {
          await this.#pace(piece);
          if (this.#swallows(pair)) {
            this.#touched++;
            pair.silent = true;
          } else if (!to.write(piece)) {
            await once(to, 'drain', { signal: pair.closed.signal });
          }
        }
      }
    } catch {
      // A reset is an end like another.
    }
    this.#ended(pair);
  }

  #swallows(pair: Pair): boolean {
    return pair.silent || this.#mode.kind === 'blackhole';
  }

  #pieces(chunk: Buffer): Buffer[] {
    if (this.#mode.kind !== 'throttle') return [chunk];
    const size = Math.max(1, Math.round((this.#mode.bytesPerSecond * PIECE_MS) / 1_000));
    return Array.from({ length: Math.ceil(chunk.length / size) }, (_, i) => chunk.subarray(i * size, (i + 1) * size));
  }

  async #pace(piece: Buffer): Promise<void> {
    const mode = this.#mode;
    if (mode.kind === 'delay') {
      this.#touched++;
      await sleep(mode.ms);
    } else if (mode.kind === 'throttle') {
      this.#touched++;
      await sleep((piece.length / mode.bytesPerSecond) * 1_000);
    }
  }

  #ended(pair: Pair): void {
    if (this.#mode.kind === 'blackhole') pair.orphaned = true;
    else this.#drop(pair);
  }

  /** What was written before goes out. */
  #drop(pair: Pair): void {
    this.#pairs.delete(pair);
    pair.closed.abort();
    pair.client.destroySoon();
    pair.server.destroySoon();
  }

  #reset(pair: Pair): void {
    this.#touched++;
    this.#pairs.delete(pair);
    pair.closed.abort();
    pair.client.resetAndDestroy();
    pair.server.resetAndDestroy();
  }
}
