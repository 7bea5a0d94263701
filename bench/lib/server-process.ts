import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Machine } from './services.ts';

const READY_MS = 60_000;

/** Starts a module that serves HTTP in a process of its own; resolves with the address that it says. It ends with the run. */
export async function startServer(machine: Machine, module: URL, args: readonly string[]): Promise<string> {
  // As it is deployed: GraphQL checks less then.
  const env = { ...process.env, NODE_ENV: 'production' };
  const child = fork(module, [...args], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const exited = once(child, 'exit');
  machine.atEnd(async () => {
    if (child.exitCode !== null) return;
    child.disconnect();
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(timer);
  });
  const [url] = (await once(child, 'message', { signal: AbortSignal.timeout(READY_MS) })) as [string];
  return url;
}
