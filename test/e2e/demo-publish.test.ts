import { exec, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NODE = ['--conditions=waymark-source', '--import=tsx'];
/** Nothing of this process's settings: CI would make the demo approve by itself. */
const ENV = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' };

function startDemo(...args: string[]) {
  const child = spawn(process.execPath, [...NODE, 'scripts/demo-publish.ts', ...args], { cwd: ROOT, env: ENV });
  // It ends its service itself.
  onTestFinished(() => void child.kill('SIGTERM'));
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      text += chunk;
    });
  }
  return { text: () => text, ended: once(child, 'close').then(([code]) => code as number | null) };
}

/** The command that the demo prints for another terminal. */
function printedCommand(text: string): string {
  const [, command = ''] = /^ {2}(WAYMARK_URL=.+)$/m.exec(text) ?? [];
  return command;
}

test('the demo of a review runs by itself with --yes, and shows what happens', { timeout: 240_000 }, async () => {
  const demo = startDemo('--yes');
  expect([await demo.ended, demo.text()]).toEqual([0, expect.stringContaining('Published.')]);
  for (const what of [
    '✓ gather  ✓ draft  ✓ images  ● review  · publish  · notify',
    'Waits for 2 children',
    'Image: the small one',
    'Approval editor requested',
    'approval editor is APPROVED',
    '"approvedBy":"user:ada"',
  ]) {
    expect(demo.text()).toContain(what);
  }
});

test('without it, it waits for the command that it prints, given in another process', {
  timeout: 240_000,
}, async () => {
  const demo = startDemo();
  const command = await eventually(
    () => {
      expect(printedCommand(demo.text())).toContain(' approve job_');
      return printedCommand(demo.text());
    },
    { timeoutMs: 120_000 },
  );
  const answered = await promisify(exec)(command.replace('The article of the demo', 'As the editor wants it'), {
    cwd: ROOT,
    env: ENV,
  });
  expect(answered.stdout).toContain('approval editor is APPROVED');
  expect([await demo.ended, demo.text()]).toEqual([0, expect.stringContaining('"headline":"As the editor wants it"')]);
});

test('a review that says no ends it with 1 and what was said', { timeout: 240_000 }, async () => {
  const demo = startDemo();
  const command = await eventually(
    () => {
      expect(printedCommand(demo.text())).toContain(' approve job_');
      return printedCommand(demo.text());
    },
    { timeoutMs: 120_000 },
  );
  await promisify(exec)(`${command.replace(' approve ', ' reject ')} --comment 'not yet'`, { cwd: ROOT, env: ENV });
  expect([await demo.ended, demo.text()]).toEqual([1, expect.stringMatching(/rejected by user:ada: not yet/)]);
});
