import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const exec = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BUILT = join(ROOT, 'node_modules/.cache/waymark-test/tasks-module');

/** A task as another copy of the package makes it: recognised by its symbol. */
const MAKE = `
const TASK = Symbol.for('waymark.task');
function task(name: string) { return { name, [TASK]: true }; }
enum Kind { A = 'plain type stripping cannot do enums' }
export const kind = Kind.A;
`;

const FILES: Record<string, string> = {
  'named.ts': `${MAKE} export const a = task('a'); export const b = task('b'); export const other = 7;`,
  'list.ts': `${MAKE} export const a = task('a'); export default [a, task('b')]; export async function setup() {}`,
  'list.mts': `${MAKE} export default [task('a'), task('b')];`,
  'one.mjs': `export default { name: 'a', [Symbol.for('waymark.task')]: true };`,
  'common.cjs': `exports.a = { name: 'a', [Symbol.for('waymark.task')]: true }; exports.setup = () => {};`,
  'none.ts': 'export const nothing: number = 1;',
  'twice.ts': `${MAKE} export default [task('a'), task('a')];`,
  'setup.ts': `${MAKE} export const a = task('a'); export const setup = 7;`,
  'broken.ts': 'export const a = ;',
  'missing-import.ts': `import 'a-package-that-is-not-there'; export {};`,
};

const loader = ['--import=tsx', '--conditions=waymark-source'];
const programs = [
  {
    name: 'from the sources, with a TypeScript loader',
    flags: loader,
    module: join(ROOT, 'src/worker/tasks-module.ts'),
  },
  { name: 'as built, without one', flags: [], module: join(BUILT, 'worker/tasks-module.js') },
];

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'waymark-tasks-'));
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(dir, name), text);
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const flags =
    '--ignoreConfig --noCheck --skipLibCheck --module nodenext --target es2023 --rewriteRelativeImportExtensions';
  const args = [...flags.split(' '), '--rootDir', 'src', '--outDir', BUILT, 'src/worker/tasks-module.ts'];
  await exec(process.execPath, [tsc, ...args], { cwd: ROOT });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

describe.each(programs)('a tasks file is loaded $name', ({ flags, module }) => {
  let outcomes: Record<string, { names?: string[]; setup?: string; error?: string; code?: string }>;

  beforeAll(async () => {
    const script = `
      const { loadTasks } = await import(${JSON.stringify(pathToFileURL(module).href)});
      const outcomes = {};
      for (const file of ${JSON.stringify([...Object.keys(FILES), 'absent.ts'])}) {
        outcomes[file] = await loadTasks(file).then(
          ({ tasks, setup }) => ({ names: tasks.map((t) => t.name), setup: typeof setup }),
          (error) => ({ error: error.message, code: error.code }),
        );
      }
      process.stdout.write(JSON.stringify(outcomes));`;
    // The working directory is the user's, the loader is ours.
    const own = flags.map((flag) =>
      flag.replace('=tsx', `=${pathToFileURL(join(ROOT, 'node_modules/tsx/dist/loader.mjs'))}`),
    );
    const { stdout } = await exec(process.execPath, [...own, '--input-type=module', '-e', script], { cwd: dir });
    outcomes = JSON.parse(stdout);
  });

  test('with tasks exported by name, in a default array, or alone, each once', () => {
    expect(outcomes['named.ts']).toEqual({ names: ['a', 'b'], setup: 'undefined' });
    expect(outcomes['list.ts']).toEqual({ names: ['a', 'b'], setup: 'function' });
    expect(outcomes['list.mts']).toEqual({ names: ['a', 'b'], setup: 'undefined' });
    expect(outcomes['one.mjs']).toEqual({ names: ['a'], setup: 'undefined' });
    expect(outcomes['common.cjs']).toEqual({ names: ['a'], setup: 'function' });
  });

  test.each([
    ['absent.ts', /does not exist$/],
    ['none.ts', /exports no task; export what defineTask returns/],
    ['twice.ts', /exports two tasks named "a"/],
    ['setup.ts', /exports "setup", which must be a function/],
    ['broken.ts', /could not be loaded: /],
    ['missing-import.ts', /could not be loaded: .*a-package-that-is-not-there/],
  ])('and %s is refused with the reason', (file, message) => {
    expect(outcomes[file]).toMatchObject({ code: 'INVALID_TASKS_FILE', error: expect.stringMatching(message) });
    expect(outcomes[file]?.error).toContain(join(dir, file));
  });
});
