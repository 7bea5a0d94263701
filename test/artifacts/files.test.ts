import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ContentStore } from '../../src/artifacts/content-store.ts';
import { fileStore, incomingOf } from '../../src/artifacts/files.ts';
import { writeGathered } from '../../src/artifacts/gathering-files.ts';

const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');

describe('contents in files', () => {
  let directory: string;
  let store: ContentStore;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'waymark-test-'));
    store = fileStore(join(directory, 'artifacts'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
  });
  const incoming = () => incomingOf(join(directory, 'artifacts'));
  const gathered = async (data: Uint8Array) => ({ path: await writeGathered(incoming(), data) });

  test('are stored whole under their sha256, from memory and from a gathered file', async () => {
    for (const data of [randomBytes(5_000), Buffer.alloc(0)]) {
      for (const content of [data, await gathered(data)]) {
        const hash = sha256(data);
        await store.put(hash, content);
        expect(await store.has(hash)).toBe(true);
        expect(await readFile(join(directory, 'artifacts', hash.slice(0, 2), hash))).toEqual(data);
        expect(await buffer((await store.open(hash)) as NodeJS.ReadableStream)).toEqual(data);
        await store.remove(hash);
        await store.remove(hash);
        expect(await store.open(hash)).toBeNull();
      }
    }
  });

  test('one that is there stays, and counts as stored now', async () => {
    const data = randomBytes(10);
    const hash = sha256(data);
    await store.put(hash, data);
    const path = join(directory, 'artifacts', hash.slice(0, 2), hash);
    await utimes(path, 1, 1);
    expect((await store.page(null)).contents).toEqual([{ sha256: hash, storedAt: 1_000 }]);
    await store.put(hash, await gathered(data));
    const [content] = (await store.page(null)).contents;
    expect(content?.storedAt).toBeGreaterThan(Date.now() - 60_000);
  });

  test('the same one from many callers at once is one file', async () => {
    const data = randomBytes(5_000);
    await Promise.all(Array.from({ length: 20 }, async () => store.put(sha256(data), await gathered(data))));
    expect((await store.page(null)).contents).toHaveLength(1);
    expect(await buffer((await store.open(sha256(data))) as NodeJS.ReadableStream)).toEqual(data);
  });

  test('pages go through all folders', async () => {
    const hashes = new Set<string>();
    for (let i = 0; i < 300; i++) {
      const data = Buffer.from(String(i));
      hashes.add(sha256(data));
      await store.put(sha256(data), data);
    }
    await writeFile(join(directory, 'artifacts', '00-note'), 'not a content');
    const found = new Set<string>();
    for (let cursor: string | null = null, first = true; first || cursor !== null; first = false) {
      const page = await store.page(cursor);
      for (const content of page.contents) found.add(content.sha256);
      cursor = page.cursor;
    }
    expect(found).toEqual(hashes);
  });

  test('what killed processes left is removed once it is old', async () => {
    const { path } = await gathered(randomBytes(10));
    await store.removeRemains(60_000);
    expect(await readdir(incoming())).toHaveLength(1);
    await utimes(path, 1, 1);
    await store.removeRemains(60_000);
    expect(await readdir(incoming())).toEqual([]);
  });
});
