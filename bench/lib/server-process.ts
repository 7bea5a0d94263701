import { Child } from './child.ts';
import type { FromServer, ToServer } from './server-protocol.ts';
import type { Machine } from './services.ts';
import { usageOf } from './usage.ts';

const READY_MS = 60_000;

/** What a server holds when all garbage is gone. */
export interface Held {
  /** Resident memory. */
  megabytes: number;
  /** JavaScript objects and the buffers that they own. */
  heapMegabytes: number;
}

/** A server in a process of its own. `More` is what it can be told besides. */
export class ServerProcess<More extends object = never> {
  readonly url: string;
  readonly #child: Child<ToServer | More, FromServer>;

  private constructor(child: Child<ToServer | More, FromServer>, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** Starts a module that serves HTTP and waits for its address. The caller closes it. */
  static async start<More extends object = never>(module: URL, args: readonly string[]): Promise<ServerProcess<More>> {
    // As it is deployed: GraphQL checks less then.
    const env = { ...process.env, NODE_ENV: 'production' };
    const child = new Child<ToServer | More, FromServer>(module, args, { env, flags: ['--expose-gc'] });
    try {
      return new ServerProcess(child, (await child.next('listening', READY_MS)).url);
    } catch (error) {
      await child.close();
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid;
  }

  send(message: More): void {
    this.#child.send(message);
  }

  /** Collects its garbage and tells what is left. */
  async held(): Promise<Held> {
    const { heapMegabytes } = await this.#child.ask({ kind: 'collect' }, 'collected', READY_MS);
    return { megabytes: (await usageOf(this.pid)).megabytes, heapMegabytes };
  }

  close(): Promise<void> {
    return this.#child.close();
  }
}

/** Starts a module that serves HTTP in a process of its own; resolves with the address that it says. It ends with the run. */
export async function startServer(machine: Machine, module: URL, args: readonly string[]): Promise<string> {
  const server = await ServerProcess.start(module, args);
  machine.atEnd(() => server.close());
  return server.url;
}
