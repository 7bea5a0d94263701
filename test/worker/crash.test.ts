import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createPostgresDatabase, describePostgres, embeddedTemplate } from '../support/database.ts';

const PROGRAM = fileURLToPath(new URL('./crash-program.ts', import.meta.url));
/** Lines at which the process is killed: in a step, between steps and batches, in an open transaction. */
const KILL_AT = ['step 2', 'batch 0', 'batch 9'];

/** Runs the service until it prints `last`, then kills it; without one, until it ends. Its last line is the answer. */
async function run(args: string[], last?: string): Promise<string> {
  const flags = ['--conditions=waymark-source', '--import=tsx'];
  const child = spawn(process.execPath, [...flags, PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const closed = new Promise((resolve) => child.once('close', resolve));
  let line = '';
  for await (line of createInterface({ input: child.stdout })) {
    if (line !== last) continue;
    child.kill('SIGKILL');
    break;
  }
  await closed;
  if (last === undefined && child.exitCode !== 0) throw new Error(`exit code ${child.exitCode}: ${errors}`);
  return line;
}

async function killAndFinish(store: string, ledger: string, killAt: string[], template?: string): Promise<void> {
  // A copy is loaded into an empty directory only.
  for (const [i, line] of killAt.entries())
    await run([store, ledger, ...(template && i === 0 ? [template] : [])], line);
  const end = JSON.parse(await run([store, ledger]));
  expect(end).toMatchObject({ rows: 201, distinct: 201, last: 200 });
  const unfinished: string[] = end.outcomes.slice(0, -1);
  expect(end.outcomes.at(-1)).toBe('SUCCEEDED');
  expect(unfinished.filter((outcome) => outcome === 'STALLED').length).toBeGreaterThanOrEqual(killAt.length);
  // Only the step that was in flight when an attempt was cut off may be there twice.
  const steps = (await readFile(ledger, 'utf8')).trim().split('\n');
  expect(new Set(steps.map((s) => s.slice(0, 6)))).toEqual(new Set([0, 1, 2, 3, 4].map((i) => `step ${i}`)));
  expect(steps.length - 5).toBeLessThanOrEqual(unfinished.length);
}

async function directory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'waymark-crash-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

describePostgres('a worker killed by kill -9', () => {
  test('leaves nothing undone and nothing done twice, on Postgres', async () => {
    const dir = await directory();
    await killAndFinish(await createPostgresDatabase(), join(dir, 'ledger'), KILL_AT);
  }, 120_000);
});

test('a worker killed by kill -9 leaves nothing undone and nothing done twice, on PGlite', async () => {
  const dir = await directory();
  const template = join(dir, 'template.tar');
  await writeFile(template, Buffer.from(await (await embeddedTemplate()).arrayBuffer()));
  // Each start of an embedded database takes seconds.
  await killAndFinish(join(dir, 'data'), join(dir, 'ledger'), ['step 2', 'batch 9'], template);
}, 180_000);
