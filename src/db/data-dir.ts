import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DataDirInUse } from '../core/errors.ts';
import { lockTakeOver } from './data-dir-lock.ts';

/** A socket's path is cut by the operating system at about this many bytes (macOS 104, Linux 108). */
const MAX_SOCKET_PATH = 100;
/** An owner that is stopped or busy accepts but does not answer; it is alive all the same. */
const ANSWER_MS = 2_000;

export interface DirOwner {
  /** The directory's real path. */
  readonly path: string;
  /** What a second process is told besides the pid. */
  setAddress(address: string | null): void;
  /** Gives the directory up. A second call does nothing. */
  release(): Promise<void>;
}

interface OwnerInfo {
  pid: number | null;
  address: string | null;
}

/** What the owner also writes down: where it listens, and for which directory, since this file may be a copy. */
interface OwnerRecord extends OwnerInfo {
  dir: string;
  socket: string;
}

/**
 * Makes this process the only owner of the directory (made with mode 0700 when it is missing): two processes on one
 * embedded database destroy it silently. The owner listens on a socket, which the operating system closes with the
 * process, however that ends; a process id or a lock file would survive it.
 *
 * @throws DataDirInUse when a process that lives owns it.
 */
export async function ownDataDir(dir: string, options: { address?: string | null } = {}): Promise<DirOwner> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const path = await realpath(dir);
  const socketPath = socketPathOf(path);
  const info = { pid: process.pid, address: options.address ?? null };

  const lock = await lockTakeOver(path);
  try {
    await refuseLivingOwner(path, socketPath);
    if (!(await lock.isHeld())) throw new DataDirInUse(path, { pid: null, address: null });
    await rm(socketPath, { force: true });
    const server = await listen(socketPath, info);
    await writeRecord({ ...info, dir: path, socket: socketPath });
    return owner(path, socketPath, server, info);
  } finally {
    await lock.release();
  }
}

function owner(path: string, socketPath: string, server: Server, info: OwnerInfo): DirOwner {
  let released: Promise<void> | undefined;
  let written: Promise<unknown> = Promise.resolve();
  const release = async () => {
    await written;
    await rm(recordPath(path), { force: true });
    // Closing removes the socket's file as well.
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return {
    path,
    setAddress(address) {
      info.address = address;
      // Only for a second process that finds this one stopped: nothing depends on it.
      const record = { ...info, dir: path, socket: socketPath };
      written = written.then(() => writeRecord(record)).catch(() => {});
    },
    release() {
      released ??= release();
      return released;
    },
  };
}

function socketPathOf(path: string): string {
  const inside = join(path, 'owner.sock');
  if (Buffer.byteLength(inside) <= MAX_SOCKET_PATH) return inside;
  return join(tmpdir(), `waymark-${createHash('sha256').update(path).digest('hex').slice(0, 24)}.sock`);
}

function listen(socketPath: string, info: OwnerInfo): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.end(JSON.stringify(info), () => socket.destroy());
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, () => {
      server.off('error', reject);
      resolve(server.unref());
    });
  });
}

async function refuseLivingOwner(path: string, socketPath: string): Promise<void> {
  const record = await readRecord(path);
  // A process with another TMPDIR would look for a long path's socket in another place.
  const places = new Set([socketPath, record?.socket ?? socketPath]);
  for (const place of places) {
    const answer = await ask(place);
    if (answer === 'nobody') continue;
    throw new DataDirInUse(path, answer === 'silent' ? (record ?? { pid: null, address: null }) : answer);
  }
}

async function ask(socketPath: string): Promise<OwnerInfo | 'silent' | 'nobody'> {
  for (let tries = 0; ; tries++) {
    const answer = await askOnce(socketPath);
    // It hung up without a word: it is about to end, or just did.
    if (answer !== 'hung up') return answer;
    if (tries === 5) return 'silent';
    await sleep(50);
  }
}

function askOnce(socketPath: string): Promise<OwnerInfo | 'silent' | 'nobody' | 'hung up'> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    const timer = setTimeout(() => finish('silent'), ANSWER_MS);
    let text = '';
    const finish = (answer: OwnerInfo | 'silent' | 'nobody' | 'hung up') => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('end', () => finish(parseInfo(text) ?? 'hung up'));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') finish('nobody');
      else finish(error.code === 'ECONNRESET' || error.code === 'EPIPE' ? 'hung up' : 'silent');
    });
  });
}

function parseInfo(text: string): (OwnerInfo & Partial<OwnerRecord>) | undefined {
  try {
    const { pid, address, dir, socket } = JSON.parse(text) as Record<string, unknown>;
    return {
      pid: typeof pid === 'number' ? pid : null,
      address: typeof address === 'string' ? address : null,
      ...(typeof dir === 'string' ? { dir } : {}),
      ...(typeof socket === 'string' ? { socket } : {}),
    };
  } catch {
    return undefined;
  }
}

const recordPath = (dir: string) => join(dir, 'owner.json');

async function readRecord(dir: string): Promise<(OwnerInfo & Partial<OwnerRecord>) | undefined> {
  const record = parseInfo(await readFile(recordPath(dir), 'utf8').catch(() => ''));
  return record?.dir === dir ? record : undefined;
}

async function writeRecord(record: OwnerRecord): Promise<void> {
  const temporary = `${recordPath(record.dir)}.${randomUUID()}`;
  await writeFile(temporary, JSON.stringify(record), { mode: 0o600 });
  await rename(temporary, recordPath(record.dir));
}
