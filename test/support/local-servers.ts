import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';

/** A server that tests may use, with the function that stops it when this run started it. */
export interface Service {
  url: string;
  stop(): Promise<void>;
}

export type Identity = { uid?: number; gid?: number };

const START_MS = 60_000;
const STOP_MS = 10_000;

/** Starts a Postgres of this run's own from binaries of this machine: a fresh cluster on a free port. */
export async function startLocalPostgres(): Promise<Service | { missing: string }> {
  const bin = await findBinaries(['initdb', 'postgres'], await debianPostgresFolders());
  if (bin === undefined) return { missing: 'no Postgres on 127.0.0.1:5432 and no initdb and postgres to start one' };
  const identity = await unprivileged();
  const dir = await mkdtemp(join(tmpdir(), 'waymark-postgres-'));
  if (identity.uid !== undefined) await chown(dir, identity.uid, identity.gid ?? identity.uid);
  const data = join(dir, 'data');

  const flags = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  const initdb = spawn(join(bin, 'initdb'), ['-D', data, ...flags], { ...identity, cwd: dir, stdio: 'ignore' });
  const [code] = await once(initdb, 'exit');
  if (code !== 0) return { missing: `initdb ended with exit code ${code}` };

  const port = await freePort();
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: dir,
    fsync: 'off',
    max_connections: 200,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn(join(bin, 'postgres'), ['-D', data, ...args], { ...identity, cwd: dir, stdio: 'ignore' });
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  return started(server, url, dir, () => answersQuery(url), 'SIGINT');
}

/** Starts a Redis of this run's own, without persistence, on a free port. */
export async function startLocalRedis(): Promise<Service | { missing: string }> {
  const bin = await findBinaries(['redis-server'], ['/usr/bin', '/usr/local/bin']);
  if (bin === undefined) return { missing: 'no Redis on 127.0.0.1:6379 and no redis-server to start one' };
  const dir = await mkdtemp(join(tmpdir(), 'waymark-redis-'));
  const port = await freePort();
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir];
  const server = spawn(join(bin, 'redis-server'), args, { stdio: 'ignore' });
  return started(server, `redis://127.0.0.1:${port}`, dir, () => answersPing('127.0.0.1', port), 'SIGTERM');
}

/** True when a Redis without a password listens there. */
export function answersPing(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    const finish = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(2_000, () => finish(false));
    socket.on('error', () => finish(false));
    socket.on('connect', () => socket.write('PING\r\n'));
    socket.on('data', (data) => finish(data.toString().startsWith('+PONG')));
  });
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Waits until the server answers; its directory goes with it. */
export async function started(
  server: ChildProcess,
  url: string,
  dir: string,
  answers: () => Promise<boolean>,
  signal: NodeJS.Signals,
): Promise<Service | { missing: string }> {
  const stop = async () => {
    if (server.exitCode === null && server.signalCode === null) {
      const exit = once(server, 'exit');
      server.kill(signal);
      await Promise.race([exit, sleep(STOP_MS, undefined, { ref: false })]);
      server.kill('SIGKILL');
    }
    await rm(dir, { recursive: true, force: true });
  };
  // A run that is killed before its teardown would leave the server behind.
  process.once('exit', () => server.kill(signal));
  server.on('error', () => {});
  for (const until = Date.now() + START_MS; Date.now() < until && server.exitCode === null; ) {
    if (await answers()) return { url, stop };
    await sleep(100);
  }
  await stop();
  return { missing: `${server.spawnfile} did not start` };
}

export async function answersQuery(url: string): Promise<boolean> {
  const sql = postgres(url, { max: 1, connect_timeout: 2, fetch_types: false });
  try {
    await sql`select 1`;
    return true;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function debianPostgresFolders(): Promise<string[]> {
  const root = '/usr/lib/postgresql';
  const versions = (await readdir(root).catch(() => [])).filter((v) => Number(v) >= 15);
  return versions.sort((a, b) => Number(b) - Number(a)).map((v) => join(root, v, 'bin'));
}

/** The folder that has all of them: of those given, or of PATH. */
export async function findBinaries(names: string[], folders: string[]): Promise<string | undefined> {
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  for (const folder of [...folders, ...path]) {
    const found = await Promise.all(names.map((name) => stat(join(folder, name)).catch(() => undefined)));
    if (found.every((file) => file?.isFile())) return folder;
  }
  return undefined;
}

/** Postgres refuses to run as root; then it runs as `postgres` or `nobody`. */
export async function unprivileged(): Promise<Identity> {
  if (process.getuid?.() !== 0) return {};
  const users = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const [, , uid, gid] = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody') ?? [];
  return uid === undefined ? {} : { uid: Number(uid), gid: Number(gid) };
}
