import './react/dom.ts';
import './recipes/browser-socket.ts';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { cleanup, fireEvent, render } from '@testing-library/react';
import { type ComponentType, createElement } from 'react';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import tasks, { setup } from '../examples/tasks.ts';
import { writePeopleCsv } from '../scripts/demo/people-csv.ts';
import { createWaymark, type Waymark } from '../src/index.ts';
import { eventually } from './support/eventually.ts';

/** What the README shows of front ends is run as it stands there, against a service with the example tasks. */
const ROOT = fileURLToPath(new URL('../', import.meta.url));
const SLOW = { timeoutMs: 60_000 };

const home = process.cwd();
let url: string;
let waymark: Waymark;
/** Within the package, so that `waymark/client` is what it is to its users. */
let modules: string;
/** Where the worker works: `people.csv` is there. */
let workplace: string;

beforeAll(async () => {
  await mkdir(join(ROOT, '.scratch'), { recursive: true });
  modules = await mkdtemp(join(ROOT, '.scratch', 'readme-'));
  workplace = await mkdtemp(join(tmpdir(), 'waymark-test-'));
  process.chdir(workplace);
  waymark = await createWaymark({ dataDir: 'memory://', databaseUrl: null, redisUrl: null, poll: '100ms', setup });
  const server = await waymark.serve({ port: 0, tasks });
  await waymark.worker({ tasks }).start();
  url = server.url;
});
afterEach(cleanup);
afterAll(async () => {
  process.chdir(home);
  await waymark.close();
  for (const dir of [modules, workplace]) await rm(dir, { recursive: true, force: true });
});

/** The block of the README that has this line, as a file. What its reader has elsewhere is put in its place. */
async function writeBlock(name: string, line: string, elsewhere: Record<string, string>): Promise<string> {
  const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```tsx?\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  const [block, ...others] = blocks.filter((text) => text.includes(line));
  if (!block || others.length > 0) throw new Error(`the README has not one block with "${line}"`);
  const text = Object.entries({ "'./tasks.ts'": "'../../examples/tasks.ts'", ...elsewhere }).reduce(
    (text, [from, to]) => {
      if (!text.includes(from)) throw new Error(`the block has no ${from}`);
      return text.replace(from, to);
    },
    block,
  );
  const file = join(modules, name);
  await writeFile(file, text);
  return file;
}

const writePlain = () => writeBlock('plain.ts', 'await job.result()', { 'http://127.0.0.1:4000': url });
const writeReact = () => writeBlock('page.tsx', 'useJobActions(', {});

/** All that a program prints. */
function run(file: string) {
  const child = spawn(process.execPath, ['--conditions=waymark-source', '--import=tsx', file], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = { text: '', exit: once(child, 'exit') };
  child.stdout.on('data', (chunk) => {
    output.text += chunk;
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await output.exit;
  });
  return output;
}

test('the examples of the README are what the compiler takes, with the types of the tasks', async () => {
  await Promise.all([writePlain(), writeReact()]);
  const config = { extends: '../../tsconfig.json', include: ['.'], compilerOptions: { jsx: 'react-jsx' } };
  await writeFile(join(modules, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  await promisify(execFile)(tsc, ['-p', modules]).catch(({ stdout }) => expect.unreachable(stdout));
}, 180_000);

test('the plain example imports, tells of each event and of the result, and then of what fails', async () => {
  await writePeopleCsv('people.csv', 2_000);
  const output = run(await writePlain());
  const prints = (text: string | RegExp) => eventually(() => expect(output.text).toMatch(text), SLOW);
  await prints(/^1 /m);
  await prints(/^\d+ people imported, \d+ rows rejected$/m);
  const seqs = [...output.text.matchAll(/^(\d+) [A-Z]/gm)].map(([, seq]) => Number(seq));
  expect(seqs.length).toBeGreaterThan(4);
  expect(seqs).toEqual(seqs.map((_, i) => i + 1));
  await prints('jobs: []');
  const { job } = await waymark.submit('csv.import', { file: 'nowhere.csv' });
  await prints(job.id);
}, 120_000);

test('the React example imports on a click, shows how far it is, and offers only what may be done', async () => {
  asIn(url);
  const { App } = (await import(pathToFileURL(await writeReact()).href)) as { App: ComponentType };
  const { container } = render(createElement(App));
  const buttons = () => [...container.querySelectorAll('button')].map((button) => button.textContent);
  const click = (name: string) => {
    const button = [...container.querySelectorAll('button')].find(({ textContent }) => textContent === name);
    if (!button) throw new Error(`there is no button ${name}`);
    fireEvent.click(button);
  };
  const shows = (text: RegExp, ...names: string[]) =>
    eventually(() => expect([container.textContent, buttons()]).toEqual([expect.stringMatching(text), names]), SLOW);

  await writePeopleCsv('people.csv', 40_000);
  await shows(/^Import$/, 'Import');
  click('Import');
  await shows(/^RUNNING [1-9]\d? % \(live\)/, 'Stop');
  click('Stop');
  await shows(/^CANCELED \d+ % \(live\)/, 'Again');
  click('Again');
  await shows(/^RUNNING/, 'Stop');
  await shows(/^COMPLETED 100 % \(live\)/, 'Again');
}, 180_000);

/** A page of this address: a browser sends what has none of its own to where the page is from. */
function asIn(address: string): void {
  const { fetch } = globalThis;
  const location = new URL(address);
  const here: typeof fetch = (input, init) => fetch(typeof input === 'string' ? new URL(input, location) : input, init);
  Object.assign(globalThis, { location, fetch: here });
  onTestFinished(() => {
    Object.assign(globalThis, { fetch });
    Reflect.deleteProperty(globalThis, 'location');
  });
}
