import { readdir, readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { expect, test } from 'vitest';

const FOLDER = new URL('../../src/client/', import.meta.url);

test('the client imports nothing but itself, types of the core and the WebSocket client, so that browsers can load it', async () => {
  const strangers: string[] = [];
  for (const name of await readdir(FOLDER)) {
    const text = await readFile(new URL(name, FOLDER), 'utf8');
    for (const [, type, from = ''] of text.matchAll(/^(?:import|export)( type)?[^;]*? from '([^']+)';/gm)) {
      const isOwn = from.startsWith('./') || from === 'graphql-ws/client';
      if (!isOwn && !(type && from.startsWith('../core/'))) strangers.push(`${name}: ${from}`);
    }
  }
  expect(strangers).toEqual([]);
});

/** Bytes over the line, with everything that it needs. */
const LIMIT = 15_000;

test(`a page loads at most ${LIMIT} bytes of it`, async () => {
  const output = await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      target: 'es2022',
      lib: { entry: new URL('index.ts', FOLDER).pathname, formats: ['es'] },
    },
  });
  const [{ output: chunks } = { output: [] }] = Array.isArray(output) ? output : [];
  const scripts = chunks.flatMap((chunk) => (chunk.type === 'chunk' ? [chunk] : []));
  const code = scripts.map((chunk) => chunk.code).join('');
  expect(scripts.flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports])).toEqual([]);
  expect(code).toContain('graphql-transport-ws');
  const bytes = gzipSync(code).byteLength;
  console.info(`waymark/client: ${bytes} bytes gzip`);
  expect(bytes).toBeLessThan(LIMIT);
}, 60_000);
