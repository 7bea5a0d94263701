import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export interface Child {
  readonly pid: number;
  readonly process: ChildProcess;
  /** The next line that it prints, parsed as JSON. Rejects when it ends first. */
  next<T = Record<string, unknown>>(): Promise<T>;
  /** Writes a line to its input. */
  tell(line: string): void;
  kill(signal?: NodeJS.Signals): void;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
}

/** Runs a TypeScript file as a process of its own, which talks in lines of JSON; killed when the test is over. */
export function startChild(file: URL, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Child {
  const command = ['--conditions=waymark-source', '--import=tsx', fileURLToPath(file), ...args];
  const child = spawn(process.execPath, command, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '', ...env },
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = once(child, 'exit').then(() => {});
  child.stdin.on('error', () => {});
  return {
    pid: child.pid as number,
    process: child,
    ended,
    tell: (line) => child.stdin.write(`${line}\n`),
    kill: (signal = 'SIGKILL') => child.kill(signal),
    async next<T>() {
      const { value, done } = await lines.next();
      if (done) throw new Error('the process ended');
      return JSON.parse(value) as T;
    },
  };
}
