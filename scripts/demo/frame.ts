import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { colorsFor, type Io } from '../../src/cli/io.ts';
import { createProgressDisplay } from '../../src/cli/progress-line.ts';
import { type ServiceProcess, startService } from './service-process.ts';

/** What every demo has: words for people, a service that ends with it, and an exit code that is true. */
export const io: Io = { env: process.env, stdout: process.stdout, stderr: process.stdout };
export const colors = colorsFor(io.stdout, io.env);
export const display = createProgressDisplay(io);
export const number = new Intl.NumberFormat('en').format;

let service: ServiceProcess | undefined;

/** Starts the service of this demo; it is killed when the demo ends. @throws Error with its log when it does not start */
export async function start(dataDir: string, port: number): Promise<ServiceProcess> {
  service = await startService(dataDir, port);
  return service;
}

/** Runs a demo in a directory of its own, which is removed, and ends the process: 0, or 1 and what was wrong. */
export async function runDemo(demo: (dir: string) => Promise<void>): Promise<never> {
  const dir = mkdtempSync(join(tmpdir(), 'waymark-demo-'));
  process.on('exit', () => {
    service?.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1));
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);
  try {
    await demo(dir);
    process.exit(0);
  } catch (error) {
    fail(error);
  }
}

/** Fails the demo when it takes longer: then something hangs. Gives the function that lifts the limit. */
export function limit(ms: number): () => void {
  const timer = setTimeout(() => fail(new Error(`not done within ${ms / 1_000} seconds`)), ms).unref();
  return () => clearTimeout(timer);
}

export function say(text: string): void {
  display.finish();
  console.log(`${colors.dim('demo:')} ${text}`);
}

export function fail(error: unknown): never {
  display.finish();
  console.log(`${colors.red('The demo failed:')} ${error instanceof Error ? error.message : String(error)}`);
  const log = service?.log().trim();
  if (log) console.log(`The end of the service's log:\n${log}`);
  process.exit(1);
}
