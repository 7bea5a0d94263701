import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The service as a process of its own. */
export interface ServiceProcess {
  readonly pid: number;
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
  /** The end of what it logged. */
  log(): string;
}

/**
 * Starts `waymark start` with the example tasks on an embedded database of its own and resolves once it listens.
 * @throws Error with its log when it ends before
 */
export async function startService(dataDir: string, port: number): Promise<ServiceProcess> {
  const args = [
    '--conditions=waymark-source',
    '--import=tsx',
    'src/cli/main.ts',
    'start',
    '--tasks',
    'examples/tasks.ts',
  ];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...withoutSettings(process.env), WAYMARK_DATA_DIR: dataDir, PORT: String(port), ...QUICK },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit').then(([code, signal]) => (signal ?? code) as number | string);
  let log = '';
  child.stderr?.on('data', (chunk) => {
    log = (log + chunk).slice(-8_000);
  });
  await Promise.race([
    listening(child),
    exited.then((how) => {
      throw new Error(`the service ended at its start (${how}):\n${log}`);
    }),
  ]);
  return { pid: child.pid ?? 0, exited, kill: (signal) => void child.kill(signal), log: () => log };
}

/** So that nobody waits 20 seconds for a dead worker to be noticed; the defaults are a lease of 15 s and a pass every 5 s. */
const QUICK = { WAYMARK_HEARTBEAT: '500ms', WAYMARK_LEASE: '3s', WAYMARK_SWEEP: '500ms', LOG_LEVEL: 'warn' };

/** The demo shows the defaults: what this shell happens to set must not change it. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = ['DATABASE_URL', 'REDIS_URL', 'HOST', 'PORT', 'LOG_LEVEL'];
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !name.startsWith('WAYMARK_') && !others.includes(name)),
  );
}

function listening(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    let text = '';
    child.stdout?.on('data', (chunk) => {
      text += chunk;
      if (/http:\/\/\S+\/graphql/.test(text)) resolve();
    });
  });
}

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
