import { readdir, readFile } from 'node:fs/promises';
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
