import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { Redis } from 'ioredis';
import { eventually } from '../../support/eventually.ts';
import { answersPing, startLocalRedis } from '../../support/local-servers.ts';
import { MissingBinaries } from './missing-binaries.ts';
import { steadyPort } from './ports.ts';

/** A Redis without persistence that can be killed and comes back, empty, on the same port. */
export class RedisServer {
  readonly port: number;
  readonly #command: string;
  readonly #log: string;
  #process: ChildProcess | undefined;

  private constructor(port: number, command: string, log: string) {
    this.port = port;
    this.#command = command;
    this.#log = log;
  }

  /** @param log file for what the server says */
  static async create(log: string): Promise<RedisServer> {
    // Started once by what all tests use, to learn where the binary is; from then on by us.
    const made = await startLocalRedis();
    if ('missing' in made) throw new MissingBinaries(made.missing);
    const first = new Redis(made.url);
    const info = await first.info('server');
    first.disconnect();
    await made.stop();
    const server = new RedisServer(await steadyPort(), /^executable:(.+?)\r?$/m.exec(info)?.[1] ?? 'redis-server', log);
    await server.start();
    return server;
  }

  urlBy(port: number): string {
    return `redis://127.0.0.1:${port}`;
  }

  /** Runs commands past all links; waits for a server that is starting. */
  async ask<T>(work: (redis: Redis) => Promise<T>): Promise<T> {
    await this.#answers();
    const redis = new Redis(this.urlBy(this.port), { retryStrategy: () => null });
    redis.on('error', () => {});
    try {
      return await work(redis);
    } finally {
      redis.disconnect();
    }
  }

  async start(): Promise<void> {
    const args = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const child = spawn(this.#command, args, { cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout?.pipe(createWriteStream(this.#log, { flags: 'a' }));
    child.on('error', () => {});
    this.#process = child;
    await this.#answers();
  }

  /** Resolves with what ended it. */
  async kill(signal: NodeJS.Signals): Promise<NodeJS.Signals | number | null> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return null;
    const ended = once(child, 'exit');
    child.kill(signal);
    const [code, by] = await ended;
    return by ?? code;
  }

  async stop(): Promise<void> {
    await this.kill('SIGTERM');
  }

  #answers(): Promise<void> {
    return eventually(
      async () => {
        if (!(await answersPing('127.0.0.1', this.port))) throw new Error(`Redis does not answer; see ${this.#log}`);
      },
      { timeoutMs: 30_000, intervalMs: 50 },
    );
  }
}
