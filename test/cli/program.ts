import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '../../src/cli/program.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const TASKS = fileURLToPath(new URL('./fixtures/tasks.ts', import.meta.url));

type Env = Record<string, string>;

export interface Ended {
  /** Exit code, or the name of the signal. */
  code: number | string;
  stdout: string;
  stderr: string;
}

/** A program that runs. */
export interface Program {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  readonly stdout: () => string;
  readonly stderr: () => string;
  kill(signal: NodeJS.Signals): void;
}

/** Runs the command line as a process of its own, with nothing of this process's settings. */
export function start(args: readonly string[], env: Env = {}): Program {
  const child = spawn(process.execPath, ['--conditions=waymark-source', '--import=tsx', 'src/cli/main.ts', ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const text = { stdout: '', stderr: '' };
  child.stdout?.on('data', (chunk) => {
    text.stdout += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    text.stderr += chunk;
  });
  const ended = once(child, 'close').then(([code, signal]) => {
    running.delete(child);
    return { code: (signal ?? code) as number | string, ...text };
  });
  return {
    pid: child.pid ?? 0,
    ended,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    kill: (signal) => void child.kill(signal),
  };
}

export function run(args: readonly string[], env: Env = {}): Promise<Ended> {
  return start(args, env).ended;
}

/** The same command line within this process: a process of its own takes a second. For commands of clients. */
export async function runHere(args: readonly string[], env: Env = {}): Promise<Ended> {
  const text = { stdout: '', stderr: '' };
  const output = (name: 'stdout' | 'stderr') => ({
    write(chunk: string) {
      text[name] += chunk;
    },
  });
  const code = await runProgram(args, { env, stdout: output('stdout'), stderr: output('stderr') });
  return { code, ...text };
}

/** A service that listens. */
export interface Service extends Program {
  readonly url: string;
}

/** Quick enough to see a dead worker noticed. */
export const QUICK: Env = {
  WAYMARK_HEARTBEAT: '200ms',
  WAYMARK_LEASE: '1s',
  WAYMARK_SWEEP: '200ms',
  WAYMARK_POLL: '200ms',
};

/** `waymark start` (or another service command) on a free port. @throws Error with its log when it ends before it listens */
export async function startService(args: readonly string[], env: Env = {}): Promise<Service> {
  const program = start(args, { PORT: '0', ...QUICK, ...env });
  const url = await Promise.race([
    listening(program),
    program.ended.then(({ code, stderr }) => {
      throw new Error(`the service ended with ${code}:\n${stderr}`);
    }),
  ]);
  return { ...program, url };
}

async function listening({ stdout }: Program): Promise<string> {
  for (;;) {
    const [, url] = /(http:\/\/[\d.:]+)\//.exec(stdout()) ?? [];
    if (url) return url;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const running = new Set<ChildProcess>();
const dirs: string[] = [];

/** A directory that `cleanUp` removes. */
export async function temporaryDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'waymark-test-'));
  dirs.push(dir);
  return dir;
}

/** Ends every program of this file and removes its directories. */
export async function cleanUp(): Promise<void> {
  const ends = [...running].map((child) => once(child, 'close'));
  for (const child of running) child.kill('SIGKILL');
  await Promise.all(ends);
  for (const dir of dirs.splice(0)) await rm(dir, { recursive: true, force: true });
}
