import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse, type SourceModule } from './support/source-modules.ts';

/**
 * The floors of the source: imports point down only. What is checked here is read from the syntax trees of the files,
 * so that text in comments and strings does not count, and type imports count as well as others.
 */
const ROOT = fileURLToPath(new URL('../', import.meta.url));
const MAX_LINES = 300;

/** Rooms of a floor do not import each other, but those of SIDEWAYS; floor 4, where everything is put together, has an order of its own. */
const FLOORS: readonly (readonly string[])[] = [
  ['core'],
  ['db', 'events', 'artifacts'],
  ['engine'],
  ['schema', 'worker', 'client', 'react', 'dashboard'],
  ['server', '', 'cli'],
];
/** They speak only GraphQL: of Waymark's own code they share the rules and words of `core` at most. */
const APART = ['client', 'react', 'dashboard'];
/** The hooks are made of the client, and of nothing else. */
const SIDEWAYS: readonly string[] = ['react → client'];

/** Which files may import a package (and its subpaths). */
const PACKAGE_RULES: readonly { packages: RegExp; only: RegExp; where: string }[] = [
  { packages: /^(drizzle-orm|postgres|@electric-sql\/pglite)(\/|$)/, only: /^src\/db\//, where: 'src/db' },
  { packages: /^ioredis(\/|$)/, only: /^src\/events\//, where: 'src/events' },
  { packages: /^s3mini(\/|$)/, only: /^src\/artifacts\/s3\.ts$/, where: 'src/artifacts/s3.ts' },
  {
    packages: /^(graphql$|graphql\/|@pothos\/)/,
    only: /^src\/(schema\/|server\/graphql\.ts$)/,
    where: 'src/schema and src/server/graphql.ts',
  },
  { packages: /^graphql-yoga(\/|$)/, only: /^src\/server\//, where: 'src/server' },
  { packages: /^graphql-ws(\/|$)/, only: /^src\/(server|client|dashboard)\//, where: 'src/server and src/client' },
  { packages: /^react(-dom)?(\/|$)/, only: /^src\/react\//, where: 'src/react' },
];
/** The environment is read at the edge, once, and handed to `parseConfig`. */
const READS_ENVIRONMENT = ['src/config.ts', 'src/cli/main.ts'];
/** The room of a file of `src/`: its folder, or '' for the files at the top. */
const roomOf = (path: string) => (path.split('/').length > 2 ? (path.split('/')[1] ?? '') : '');
const floorOf = (room: string) => FLOORS.findIndex((rooms) => rooms.includes(room));

function arrowProblem(from: string, to: string): string | null {
  if (!to.startsWith('src/')) return `${from} → ${to}: leaves src`;
  const [room, target] = [roomOf(from), roomOf(to)];
  const [floor, targetFloor] = [floorOf(room), floorOf(target)];
  if (floor < 0) return `${from}: no floor has the room ${room}`;
  if (room === target || SIDEWAYS.includes(`${room} → ${target}`)) return null;
  if (APART.includes(room) && target !== 'core') return `${from} → ${to}: ${room} speaks only GraphQL`;
  if (targetFloor > floor) return `${from} → ${to}: points up`;
  const top = FLOORS.length - 1;
  if (floor === top && targetFloor === top) {
    const rooms = FLOORS[top] ?? [];
    return rooms.indexOf(target) > rooms.indexOf(room) ? `${from} → ${to}: points up` : null;
  }
  return targetFloor === floor ? `${from} → ${to}: points sideways` : null;
}

const arrows = (modules: readonly SourceModule[]) =>
  modules.flatMap(({ path, imports }) => imports.flatMap((to) => arrowProblem(path, to) ?? []));

const strangers = (modules: readonly SourceModule[]) =>
  modules.flatMap(({ path, packages }) =>
    packages.flatMap((name) =>
      PACKAGE_RULES.filter(({ packages, only }) => packages.test(name) && !only.test(path)).map(
        ({ where }) => `${path} → ${name}: only ${where} may import it`,
      ),
    ),
  );

/** Each ring of files that import each other, as `a → b → a`. */
function cycles(modules: readonly SourceModule[]): string[] {
  const byPath = new Map(modules.map((m) => [m.path, m]));
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) found.push([...trail.slice(at), path].join(' → '));
    if (at >= 0 || done.has(path)) return;
    for (const next of byPath.get(path)?.imports ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const { path } of modules) visit(path, []);
  return found;
}

const modules = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path))
  .sort()
  .map((path) => parse(`src/${path}`, readFileSync(join(ROOT, 'src', path), 'utf8')));

describe('the floors', () => {
  it('are imported downwards only', () => {
    expect(modules.length).toBeGreaterThan(100);
    expect(arrows(modules)).toEqual([]);
  });

  it('are imported by paths that exist', () => {
    const missing = modules.flatMap((m) => m.imports.filter((to) => !existsSync(join(ROOT, to))));
    expect(missing).toEqual([]);
  });

  it('have no ring of imports', () => {
    expect(cycles(modules)).toEqual([]);
  });
});

describe('what belongs in one place', () => {
  it('packages are imported only where they are at home', () => {
    expect(strangers(modules)).toEqual([]);
  });

  it('the environment is read only where the configuration is made', () => {
    expect(modules.filter((m) => m.readsEnvironment).map((m) => m.path)).toEqual(READS_ENVIRONMENT.toSorted());
  });

  it('no file keeps a database handle: it is handed in', () => {
    expect(modules.flatMap((m) => m.handles.map((name) => `${m.path}: ${name}`))).toEqual([]);
    expect(modules.flatMap((m) => m.homeless.map((name) => `${m.path}: ${name}`))).toEqual([]);
  });

  it(`no file is longer than ${MAX_LINES} lines`, () => {
    expect(modules.filter((m) => m.lines > MAX_LINES).map((m) => `${m.path}: ${m.lines} lines`)).toEqual([]);
  });
});

/** The rules must be able to fail: each finds what is planted for it. */
describe('the rules themselves', () => {
  it.each([
    ['src/core/a.ts', `import type { Db } from '../db/types.ts';`, 'src/core/a.ts → src/db/types.ts: points up'],
    ['src/db/a.ts', `export * from '../events/channel.ts';`, 'src/db/a.ts → src/events/channel.ts: points sideways'],
    [
      'src/db/reads/a.ts',
      `const e = await import('../../engine/engine.ts');`,
      'src/db/reads/a.ts → src/engine/engine.ts: points up',
    ],
    [
      'src/worker/a.ts',
      `let j: import('../schema/job.ts').Job;`,
      'src/worker/a.ts → src/schema/job.ts: points sideways',
    ],
    [
      'src/engine/a.ts',
      `new Worker(new URL('../worker/a.ts', import.meta.url));`,
      'src/engine/a.ts → src/worker/a.ts: points up',
    ],
    [
      'src/client/a.ts',
      `import '../engine/types.ts';`,
      'src/client/a.ts → src/engine/types.ts: client speaks only GraphQL',
    ],
    ['src/react/a.ts', `import '../worker/a.ts';`, 'src/react/a.ts → src/worker/a.ts: react speaks only GraphQL'],
    ['src/client/a.ts', `import '../react/a.ts';`, 'src/client/a.ts → src/react/a.ts: client speaks only GraphQL'],
    [
      'src/server/a.ts',
      `import { createWaymark } from '../waymark.ts';`,
      'src/server/a.ts → src/waymark.ts: points up',
    ],
    [
      'src/waymark.ts',
      `import { runProgram } from './cli/program.ts';`,
      'src/waymark.ts → src/cli/program.ts: points up',
    ],
    ['src/core/a.ts', `import { it } from '../../test/a.ts';`, 'src/core/a.ts → test/a.ts: leaves src'],
    ['src/attic/a.ts', `import '../core/a.ts';`, 'src/attic/a.ts: no floor has the room attic'],
  ])('%s: %s', (path, source, problem) => {
    expect(arrows([parse(path, source)])).toEqual([problem]);
  });

  it('let pass what points down, stays in its room, or only looks like an import', () => {
    const source = `import './b.ts'; import { x } from '../core/x.ts'; // import '../cli/main.ts'
      const y = "import '../cli/main.ts'"; const z = new URL('../dashboard/', import.meta.url);`;
    expect(arrows([parse('src/engine/a.ts', source)])).toEqual([]);
    expect(arrows([parse('src/react/a.ts', `import '../client/index.ts';`)])).toEqual([]);
  });

  it.each([
    ['src/engine/a.ts', 'drizzle-orm/pg-core', 'src/db'],
    ['src/worker/a.ts', '@electric-sql/pglite', 'src/db'],
    ['src/db/a.ts', 'ioredis', 'src/events'],
    ['src/artifacts/files.ts', 's3mini', 'src/artifacts/s3.ts'],
    ['src/server/other.ts', 'graphql', 'src/schema and src/server/graphql.ts'],
    ['src/client/a.ts', 'graphql/language', 'src/schema and src/server/graphql.ts'],
    ['src/client/a.ts', 'react', 'src/react'],
    ['src/engine/a.ts', '@pothos/core', 'src/schema and src/server/graphql.ts'],
  ])('%s must not import %s', (path, name, where) => {
    const planted = parse(path, `import type { A } from '${name}';`);
    expect(strangers([planted])).toEqual([`${path} → ${name}: only ${where} may import it`]);
  });

  it.each([
    'process.env.PORT',
    `process['env']`,
    'const { env } = process;',
    'const { ...all } = process;',
    `import { env } from 'node:process';`,
    `import process from 'node:process';`,
  ])('the environment is found in %s', (source) => {
    expect(parse('src/core/a.ts', source).readsEnvironment).toBe(true);
    expect(parse('src/core/a.ts', `/* ${source.replaceAll('*/', '')} */ process.cwd()`).readsEnvironment).toBe(false);
  });

  it('a ring of imports is found', () => {
    const ring = { a: './b.ts', b: './c.ts', c: './a.ts', d: './a.ts' };
    const planted = Object.entries(ring).map(([name, to]) =>
      parse(`src/core/${name}.ts`, `import type {} from '${to}';`),
    );
    expect(cycles(planted)).toEqual(['src/core/a.ts → src/core/b.ts → src/core/c.ts → src/core/a.ts']);
  });

  it('a database handle is found', () => {
    expect(parse('src/db/a.ts', `export const db = postgres('postgres://');`).handles).toEqual(['db']);
    expect(parse('src/db/a.ts', 'const pool = new PostgresPool({});').handles).toEqual(['pool']);
    const reads = `export async function a(id: string) {} export function b(db: Executor): Promise<void> {}
      export function c(): Promise<void> {} export function d(): string {}`;
    expect(parse('src/db/reads/a.ts', reads).homeless).toEqual(['a', 'c']);
  });
});
