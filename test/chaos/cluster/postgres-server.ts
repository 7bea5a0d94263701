import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres, { type Sql } from 'postgres';
import { eventually } from '../../support/eventually.ts';
import { startLocalPostgres } from '../../support/local-servers.ts';
import { MissingBinaries } from './missing-binaries.ts';
import { steadyPort } from './ports.ts';

const START_MS = 60_000;

/** A Postgres that can be killed and comes back on the same port with the same data. */
export class PostgresServer {
  readonly port: number;
  readonly #command: string;
  readonly #args: readonly string[];
  readonly #identity: { uid?: number; gid?: number };
  readonly #dispose: () => Promise<void>;
  readonly #log: string;
  #process: ChildProcess | undefined;

  private constructor(o: {
    port: number;
    command: string;
    args: readonly string[];
    identity: { uid?: number; gid?: number };
    dispose: () => Promise<void>;
    log: string;
  }) {
    this.port = o.port;
    this.#command = o.command;
    this.#args = o.args;
    this.#identity = o.identity;
    this.#dispose = o.dispose;
    this.#log = o.log;
  }

  /** Makes a cluster of its own and starts it. @param log file for what the server says */
  static async create(log: string): Promise<PostgresServer> {
    const made = await startLocalPostgres();
    if ('missing' in made) throw new MissingBinaries(made.missing);
    // Started once by what all tests use; from then on by us, so that it can be killed and started again.
    const sql = postgres(made.url, { max: 1, fetch_types: false });
    const [row] = await sql`show data_directory`;
    await sql.end();
    const data = row?.data_directory as string;
    const [options, pidFile, owner] = await Promise.all([
      readFile(join(data, 'postmaster.opts'), 'utf8'),
      readFile(join(data, 'postmaster.pid'), 'utf8'),
      stat(data),
    ]);
    process.kill(Number(pidFile.split('\n')[0]), 'SIGINT');
    await eventually(async () => {
      const there = await stat(join(data, 'postmaster.pid')).catch(() => undefined);
      if (there) throw new Error('the first Postgres does not stop');
    });
    const [command = '', ...args] = options.trim().split(' "');
    const port = await steadyPort();
    const settings = [`port=${port}`, 'fsync=on', 'log_lock_waits=on', 'log_checkpoints=off', 'log_line_prefix=%m %a '];
    const server = new PostgresServer({
      port,
      command,
      args: [...args.map((arg) => arg.replace(/"$/, '')), ...settings.flatMap((setting) => ['-c', setting])],
      identity: process.getuid?.() === owner.uid ? {} : { uid: owner.uid, gid: owner.gid },
      dispose: made.stop,
      log,
    });
    await server.start();
    return server;
  }

  /** For clients that know nothing of links. */
  get url(): string {
    return this.urlBy(this.port);
  }

  urlBy(port: number): string {
    return `postgres://postgres@127.0.0.1:${port}/postgres`;
  }

  /** Runs statements past all links; waits for a server that is starting. */
  async ask<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    const sql = postgres(this.url, { max: 1, fetch_types: false, onnotice: () => {} });
    try {
      await eventually(() => sql`select 1`, { timeoutMs: START_MS, intervalMs: 100 });
      return await work(sql);
    } finally {
      await sql.end({ timeout: 1 });
    }
  }

  /** Resolves when it takes connections. */
  async start(): Promise<void> {
    for (const until = Date.now() + START_MS; ; ) {
      const child = this.#spawn();
      const answered = eventually(() => this.#answers(child), { timeoutMs: START_MS, intervalMs: 50 });
      // Processes of the one that was killed may hold its memory for a moment: then the new one ends at once.
      const first = await Promise.race([answered.then(() => 'up' as const), once(child, 'exit').then(() => 'ended')]);
      answered.catch(() => {});
      if (first === 'up') return;
      if (Date.now() > until) throw new Error(`Postgres does not start; see ${this.#log}`);
      await sleep(100);
    }
  }

  /** Whose sessions have waited for a lock for over a second, once for each wait. */
  async lockWaits(): Promise<string[]> {
    const log = await readFile(this.#log, 'utf8');
    return [...log.matchAll(/^\S+ \S+ \S+ (.*?) LOG: {2}process \d+ still waiting for/gm)].map(
      ([, who]) => who || 'handlers',
    );
  }

  /** Gives the signal to the postmaster alone. Resolves with what ended it. */
  async kill(signal: NodeJS.Signals): Promise<NodeJS.Signals | number | null> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return null;
    const ended = once(child, 'exit');
    child.kill(signal);
    const [code, by] = await ended;
    return by ?? code;
  }

  async stop(): Promise<void> {
    await this.kill('SIGINT');
    await this.#dispose();
  }

  #spawn(): ChildProcess {
    const child = spawn(this.#command, this.#args, { ...this.#identity, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
    const log = createWriteStream(this.#log, { flags: 'a' });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log);
    child.on('error', () => {});
    this.#process = child;
    return child;
  }

  async #answers(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null) return;
    const sql = postgres(this.url, { max: 1, connect_timeout: 2, fetch_types: false });
    try {
      await sql`select 1`;
    } finally {
      await sql.end({ timeout: 1 });
    }
  }
}
