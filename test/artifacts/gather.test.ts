import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type ArtifactData, type Gathered, type GatherOptions, gather } from '../../src/artifacts/gather.ts';

const anything = <T>(step: Promise<T>): Promise<T> => step;

describe('gathering a content', () => {
  let directory: string;
  let options: GatherOptions;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'waymark-test-'));
    options = { directory, memoryBytes: 1_000, maxBytes: null };
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
  });
  const bytesOf = async ({ content }: Gathered) =>
    'path' in content ? readFile(content.path) : Buffer.from(content.buffer, content.byteOffset, content.byteLength);

  test.each<[string, () => ArtifactData]>([
    ['a string', () => 'grüße'],
    ['bytes', () => new Uint8Array(Buffer.from('grüße'))],
    ['a part of a buffer', () => Buffer.from('xgrüßex').subarray(1, 8)],
    ['an ArrayBuffer', () => new Uint8Array(Buffer.from('grüße')).buffer],
    ['a Blob', () => new Blob(['grü', 'ße'])],
    ['an async iterable of both', () => Readable.from(['grü', Buffer.from('ße')])],
    ['a web stream', () => new Blob(['grüße']).stream()],
  ])('%s', async (_, data) => {
    const gathered = await gather(data(), 'a', options, anything);
    expect(String(await bytesOf(gathered))).toBe('grüße');
    expect(gathered.bytes).toBe(7);
    expect(gathered.sha256).toBe(createHash('sha256').update('grüße').digest('hex'));
  });

  test('whatever the pieces are, the content and its sha256 are those of the whole', async () => {
    const pieces = fc.array(fc.uint8Array({ maxLength: 700 }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(pieces, async (given) => {
        const whole = Buffer.concat(given);
        const gathered = await gather(Readable.from(given), 'a', options, anything);
        expect(await bytesOf(gathered)).toEqual(whole);
        expect(gathered).toMatchObject({
          bytes: whole.length,
          sha256: createHash('sha256').update(whole).digest('hex'),
        });
        expect('path' in gathered.content).toBe(whole.length > options.memoryBytes);
        await gathered.release();
      }),
      { numRuns: 60 },
    );
    expect(await readdir(directory)).toEqual([]);
  });

  test('a source that uses its memory again does not change what was given', async () => {
    async function* same() {
      const piece = Buffer.alloc(300);
      for (const n of [1, 2, 3, 4, 5]) yield piece.fill(n);
    }
    const expected = Buffer.concat([1, 2, 3, 4, 5].map((n) => Buffer.alloc(300, n)));
    expect(await bytesOf(await gather(same(), 'a', options, anything))).toEqual(expected);
  });

  test('one that is too large is refused at the limit, not at its end, and leaves nothing', async () => {
    let given = 0;
    let closed = false;
    async function* endless() {
      try {
        for (;;) {
          given++;
          yield randomBytes(1_000);
        }
      } finally {
        closed = true;
      }
    }
    const refused = await gather(endless(), 'big.bin', { ...options, maxBytes: 5_000 }, anything).catch((e) => e);
    expect(refused).toMatchObject({ code: 'ARTIFACT_TOO_LARGE' });
    expect(refused.message).toMatch(/"big\.bin" is larger than 5000 bytes.*WAYMARK_S3_URL/);
    expect(given).toBe(6);
    expect(closed).toBe(true);
    expect(await readdir(directory)).toEqual([]);
  });

  test('a source that fails, or an attempt that ends, leaves nothing', async () => {
    async function* broken() {
      yield randomBytes(2_000);
      throw new Error('the disk of the other side is full');
    }
    await expect(gather(broken(), 'a', options, anything)).rejects.toThrow('the disk of the other side is full');
    async function* hanging() {
      yield randomBytes(2_000);
      await new Promise(() => {});
    }
    let steps = 0;
    const ended = <T>(step: Promise<T>) => (++steps === 2 ? Promise.reject(new Error('over')) : step);
    await expect(gather(hanging(), 'a', options, ended)).rejects.toThrow('over');
    expect(await readdir(directory)).toEqual([]);
  });

  test.each([[undefined], [null], [7], [{ a: 1 }], [Readable.from([{ a: 1 }])]])('%s is no content', async (data) => {
    const refused = gather(data as unknown as ArtifactData, 'a', options, anything);
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_ARTIFACT' });
  });
});
