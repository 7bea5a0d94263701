import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { buildSchema, parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import { runProgram } from '../src/cli/program.ts';
import { SETTINGS } from '../src/config.ts';
import { SECTIONS, sectionOf, withSections } from './support/readme-sections.ts';

/** What the README says about commands, files, settings and states is so. */
const ROOT = fileURLToPath(new URL('../', import.meta.url));
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
/** npm's own commands. */
const NPM = ['ci', 'install', 'pack'];

const all = (pattern: RegExp) => [...README.matchAll(pattern)].map((match) => match[1] ?? '');
const blocks = (language: string) => all(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'));

describe('README.md', () => {
  it.each(Object.keys(SECTIONS))('has the markers of the section %s', (name) => {
    expect(sectionOf(README, name)).not.toBeNull();
  });

  it('has its generated sections as the source says; `npx vitest run test/readme.test.ts -u` writes them', async () => {
    await expect(withSections(README)).toMatchFileSnapshot('../README.md');
  });

  it('links to files that exist', () => {
    const links = all(/\]\(([^)\s]+)\)/g).filter((link) => !/^(https?:|#)/.test(link));
    expect(links.length).toBeGreaterThan(0);
    expect(links.filter((link) => !existsSync(join(ROOT, link.replace(/#.*/, ''))))).toEqual([]);
  });

  it('names scripts that exist', () => {
    const named = [
      ...all(/npm run ([\w:-]+)/g),
      ...all(/npm (?!run\b)([a-z]+)/g).filter((name) => !NPM.includes(name)),
    ];
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    for (const path of all(/`(\.ci\/\w+)`/g)) expect(existsSync(join(ROOT, path)), path).toBe(true);
  });

  it('names commands that exist', async () => {
    const { stdout, stderr } = { stdout: new PassThrough(), stderr: new PassThrough() };
    await runProgram(['--help'], { env: {}, stdout, stderr } as unknown as Parameters<typeof runProgram>[1]);
    stdout.end();
    const help = await text(stdout);
    const commands = [...help.matchAll(/^ {2}([a-z]+)\b/gm)].map((match) => match[1]);
    expect(commands).toContain('start');
    const named = [...all(/`waymark ([a-z]+)/g), ...all(/^waymark ([a-z]+)/gm), ...all(/waymark -- ([a-z]+)/g)];
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => !commands.includes(name))).toEqual([]);
  });

  it('names settings that exist', () => {
    const names: string[] = SETTINGS.map((s) => s.name);
    expect(all(/\b(WAYMARK_[A-Z_]+)\b/g).filter((name) => !names.includes(name))).toEqual([]);
  });

  it('imports what the packages export', async () => {
    const modules: Record<string, object> = {
      waymark: await import('../src/index.ts'),
      'waymark/client': await import('../src/client/index.ts'),
    };
    const imports = [...README.matchAll(/^import \{ ([^}]*) \} from '(waymark(?:\/client)?)'/gm)];
    expect(imports.length).toBeGreaterThan(0);
    for (const [, names = '', from = ''] of imports) {
      for (const name of names.split(',')) expect(Object.keys(modules[from] ?? {})).toContain(name.trim());
    }
  });

  it('shows GraphQL that the schema takes', () => {
    const schema = buildSchema(readFileSync(join(ROOT, 'schema.graphql'), 'utf8'));
    const documents = blocks('graphql');
    expect(documents.length).toBeGreaterThan(0);
    for (const document of documents) expect(validate(schema, parse(document)), document).toEqual([]);
  });
});

describe('the check of generated sections', () => {
  it('finds a chart or a table that is not as the source says', () => {
    const chart = withSections('<!-- state-chart -->\n<!-- /state-chart -->');
    expect(chart).toContain('QUEUED --> RUNNING: claim\n');
    expect(chart).toContain('RUNNING --> RUNNING: cancel\n');
    expect(chart).not.toContain('DEFERRED --> RUNNING');
    expect(withSections(chart.replace('claim', 'grab'))).toBe(chart);
    const table = withSections('<!-- settings -->\nold\n<!-- /settings -->');
    expect(table).toContain('| `WAYMARK_LEASE` | `15s` |');
    expect(table).not.toContain('old');
  });
});
