import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { ContentStore } from '../../src/artifacts/content-store.ts';
import { s3Store } from '../../src/artifacts/s3.ts';
import { Unavailable } from '../../src/core/errors.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';

const PREFIX = 'waymark/one';
const MB = 1024 * 1024;
const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');

describe('contents in S3', () => {
  let s3: S3Server;
  let store: ContentStore;
  let directory: string;
  beforeEach(async () => {
    s3 = await startS3();
    directory = await mkdtemp(join(tmpdir(), 'waymark-test-'));
    store = s3Store(s3.options, PREFIX, directory);
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
  });

  async function gathered(data: Uint8Array): Promise<{ path: string }> {
    const path = join(directory, randomBytes(8).toString('hex'));
    await writeFile(path, data);
    return { path };
  }

  async function read(hash: string): Promise<Buffer | null> {
    const stream = await store.open(hash);
    return stream && buffer(stream);
  }

  test('a small one goes in one request, and comes back as it was', async () => {
    const data = randomBytes(1000);
    const hash = sha256(data);
    expect(await store.has(hash)).toBe(false);
    expect(await store.open(hash)).toBeNull();
    await store.put(hash, data);
    expect(await store.has(hash)).toBe(true);
    expect(await read(hash)).toEqual(data);
    expect([...s3.objects.keys()]).toEqual([`${PREFIX}/${hash}`]);
    await store.remove(hash);
    await store.remove(hash);
    expect(s3.objects.size).toBe(0);
  });

  test('a large one goes in parts, once', async () => {
    const data = randomBytes(17 * MB);
    const hash = sha256(data);
    await store.put(hash, await gathered(data));
    expect(s3.calls.filter((c) => c.startsWith('PUT')).length).toBe(3);
    expect(s3.uploads.size).toBe(0);
    expect(sha256((await read(hash)) as Buffer)).toBe(hash);
    const before = s3.calls.length;
    await store.put(hash, await gathered(data));
    expect(s3.calls.slice(before)).toEqual([`HEAD ${PREFIX}/${hash}`]);
  });

  test('a part that fails is sent again; when it fails for good nothing is left', async () => {
    const data = randomBytes(17 * MB);
    const hash = sha256(data);
    let failures = 0;
    s3.fail = (call) => (call.includes('partNumber=2') && ++failures <= 2 ? 503 : null);
    await store.put(hash, await gathered(data));
    expect(failures).toBe(3);
    expect(sha256((await read(hash)) as Buffer)).toBe(hash);

    const other = randomBytes(17 * MB);
    s3.fail = (call) => (call.includes('partNumber=2') ? 503 : null);
    await expect(store.put(sha256(other), await gathered(other))).rejects.toBeInstanceOf(Unavailable);
    expect(s3.uploads.size).toBe(0);
    expect(await store.has(sha256(other))).toBe(false);
  });

  test('uploads that a killed process never finished are ended once they are old', async () => {
    await store.removeRemains(60_000);
    const upload = (key: string, initiated: Date) => ({ key, initiated, parts: new Map() });
    s3.uploads.set('old', upload(`${PREFIX}/a`, new Date(1e12)));
    await store.removeRemains(60_000);
    expect([...s3.uploads.keys()]).toEqual([]);
    s3.uploads.set('old', upload(`${PREFIX}/a`, new Date(1e12)));
    s3.uploads.set('new', upload(`${PREFIX}/b`, new Date()));
    s3.uploads.set('foreign', upload('waymark/other/c', new Date(1e12)));
    await store.removeRemains(60_000);
    expect([...s3.uploads.keys()]).toEqual(['new', 'foreign']);
  });

  test('an absence is told from a wrong setting', async () => {
    s3.fail = () => 500;
    await expect(store.has('a'.repeat(64))).rejects.toBeInstanceOf(Unavailable);
    s3.fail = null;
    const wrong = s3Store({ ...s3.options, secret: 'other' }, PREFIX, directory);
    const refused = await wrong.put('a'.repeat(64), randomBytes(3)).catch((error: unknown) => error);
    expect(refused).not.toBeInstanceOf(Unavailable);
    expect(String(refused)).toContain('403');
    const nobody = s3Store({ ...s3.options, url: 'http://127.0.0.1:1' }, PREFIX, directory);
    await expect(nobody.has('a'.repeat(64))).rejects.toBeInstanceOf(Unavailable);
  });

  test('pages list what is under the prefix, and nothing that is not ours', async () => {
    const hashes = Array.from({ length: 1_200 }, (_, i) => sha256(Buffer.from(String(i)))).sort();
    for (const hash of hashes) s3.objects.set(`${PREFIX}/${hash}`, { data: Buffer.alloc(0), modified: new Date(1e12) });
    s3.objects.set(`${PREFIX}/notes.txt`, { data: Buffer.alloc(0), modified: new Date() });
    s3.objects.set(`waymark/other/${hashes[0]}`, { data: Buffer.alloc(0), modified: new Date() });
    const first = await store.page(null);
    expect(first.cursor).not.toBeNull();
    const second = await store.page(first.cursor);
    expect(second.cursor).toBeNull();
    expect([...first.contents, ...second.contents]).toEqual(hashes.map((hash) => ({ sha256: hash, storedAt: 1e12 })));
  });
});
