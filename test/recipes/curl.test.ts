import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openProxy } from '../client/proxy.ts';
import { type HandWorker, handWorker } from '../server/hand-worker.ts';
import { type Service, startService } from '../server/service.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runningJob, saveOverBreaks } from './rough-line.ts';

const SCRIPT = fileURLToPath(new URL('../../examples/recipes/curl.sh', import.meta.url));
const isMissing = spawnSync('curl', ['--version']).error !== undefined;
if (isMissing && process.env.CI === 'true') throw new Error('the recipe for curl needs curl');
if (isMissing) test.skip('the recipe for curl, which is missing here', () => {});

/** The script as its users run it; with its children it is a group of its own, which is ended as one. */
function run(args: string[]) {
  const child: ChildProcess = spawn(SCRIPT, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  onTestFinished(() => {
    if (child.exitCode === null && child.pid) process.kill(-child.pid, 'SIGKILL');
  });
  if (!child.stdout || !child.stderr) throw new Error('no pipes');
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  return { lines, exit, stderr: text(child.stderr) };
}

describe.skipIf(isMissing).each(databases())('curl on $name', { timeout: 90_000 }, ({ open }) => {
  let service: Service;
  let worker: HandWorker;

  beforeAll(async () => {
    service = await startService(open);
    worker = await handWorker(service);
  });

  test('over any number of broken connections each event comes once and in order, up to the terminal one', async () => {
    const proxy = await openProxy(service.url);
    const job = await runningJob(service, worker);
    const { lines, exit } = run([job.id, proxy.url]);
    await saveOverBreaks(job, proxy, () => lines.length);
    await worker.complete(job.id);
    expect(await exit).toBe(0);
    const events = lines.map((line) => JSON.parse(line).data.jobEvents);
    expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: job.seq() + 1 }, (_, i) => i + 1));
    expect(events.at(-1)).toMatchObject({ type: 'JobCompleted', state: 'COMPLETED' });
    expect(proxy.seen.streams).toBeGreaterThan(3);
    await eventually(() => expect(service.server.stats().eventStreams).toBe(0));
  });

  test('a proxy that answers for the service is tried again', async () => {
    const proxy = await openProxy(service.url);
    proxy.streams = 'refuse';
    const { id } = await runningJob(service, worker);
    await worker.complete(id);
    const { lines, exit } = run([id, proxy.url]);
    await eventually(() => expect(proxy.seen.streams).toBeGreaterThan(1));
    proxy.streams = 'pass';
    expect(await exit).toBe(0);
    expect(lines).toHaveLength(3);
  });

  test('what is not there is an error, and is not asked for again', async () => {
    const { lines, exit, stderr } = run(['job_00000000000000000000000000', `${service.url}/graphql`]);
    expect(await exit).toBe(1);
    expect(lines).toEqual([]);
    expect(await stderr).toMatch(/^\S.*was not found.*\n$/);
  });
});
