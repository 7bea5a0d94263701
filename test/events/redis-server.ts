import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from '../support/local-servers.ts';

/** Whether this machine has a Redis to start. */
export const hasRedisServer = spawnSync('redis-server', ['--version']).status === 0;

/** A Redis of a test's own on a free port, without persistence; it can be stopped and started again there. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** Runs one command on a connection of its own. */
  command(name: string, ...args: string[]): Promise<unknown>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<RedisServer> {
  const port = await freePort();
  let server: ChildProcess | undefined;
  // A run that is killed before it can stop the server would leave it behind.
  process.once('exit', () => server?.kill('SIGKILL'));

  const redis: RedisServer = {
    port,
    url: `redis://127.0.0.1:${port}`,
    async command(name, ...args) {
      const client = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => null });
      client.on('error', () => {});
      try {
        await client.connect();
        return await client.call(name, ...args);
      } finally {
        client.disconnect();
      }
    },
    async start() {
      server = spawn(
        'redis-server',
        ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
        {
          stdio: 'ignore',
        },
      );
      for (let tries = 0; ; tries++) {
        try {
          await redis.command('PING');
          return;
        } catch (error) {
          if (tries > 200) throw error;
          await sleep(25);
        }
      }
    },
    async stop() {
      if (!server || server.exitCode !== null || server.signalCode !== null) return;
      const exit = once(server, 'exit');
      server.kill('SIGKILL');
      await exit;
    },
  };
  await redis.start();
  return redis;
}

/** A TCP proxy whose link can be cut, or made to swallow everything without closing. */
export interface Proxy {
  readonly port: number;
  mode: 'pass' | 'blackhole';
  /** Resets every connection. */
  cut(): void;
  close(): Promise<void>;
}

export async function startProxy(target: number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (data) => proxy.mode === 'pass' && upstream.write(data));
    upstream.on('data', (data) => proxy.mode === 'pass' && client.write(data));
  });
  const proxy: Proxy = {
    port: 0,
    mode: 'pass',
    cut() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    async close() {
      proxy.cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return Object.assign(proxy, { port: portOf(server) });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
