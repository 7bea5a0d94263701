import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs one command of the command line as a process of its own, against the service at `url`. Gives what it printed.
 * @throws Error with its complaint when it does not exit 0
 */
export async function runWaymark(url: string, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ['--conditions=waymark-source', '--import=tsx', 'src/cli/main.ts', ...args], {
    cwd: ROOT,
    env: { ...process.env, WAYMARK_URL: url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk) => {
      text[name] += chunk;
    });
  }
  const [code, signal] = await once(child, 'close');
  if (code !== 0) throw new Error(`waymark ${args[0]} ended with ${signal ?? code}: ${text.stderr.trim()}`);
  return text.stdout;
}
