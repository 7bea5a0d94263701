import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { ReadableStream as NodeStream } from 'node:stream/web';
import { S3mini, S3NetworkError, S3ServiceError, type UploadPart } from 's3mini';
import { isSha256 } from '../core/artifact.ts';
import { Unavailable } from '../core/errors.ts';
import type { Content, ContentStore } from './content-store.ts';
import { removeOldFiles } from './gathering-files.ts';

/** An S3-compatible store, and where in it contents are kept. */
export interface S3Options {
  /** `https://s3.eu-central-1.amazonaws.com`; the bucket is named in the path. */
  url: string;
  bucket: string;
  region: string;
  keyId: string;
  secret: string;
}

/** Parts are uploaded one after the other, each held in memory; S3 takes 5 MB at least, and 10,000 parts at most. */
const PART_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 10_000;
/** How often a part is sent. */
const TRIES = 3;
/** Time until the answer begins: for what only asks, and for what brings a part. */
const ANSWER_MS = 30_000;
const UPLOAD_MS = 5 * 60_000;
const PAGE = 1_000;

/**
 * Contents as objects `<prefix>/<sha256>` of a bucket. The prefix must belong to one database alone: what has no row in it
 * is removed.
 * @param gathered where contents are gathered before they are sent
 */
export function s3Store(options: S3Options, prefix: string, gathered: string): ContentStore {
  const client = new S3mini({
    accessKeyId: options.keyId,
    secretAccessKey: options.secret,
    endpoint: `${options.url.replace(/\/+$/, '')}/${options.bucket}`,
    region: options.region,
    fetch: answeredInTime,
  });
  const keyOf = (sha256: string) => `${prefix}/${sha256}`;

  async function putFile(key: string, path: string): Promise<void> {
    const file = await open(path, 'r');
    try {
      const { size } = await file.stat();
      const partBytes = Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS));
      if (size <= partBytes) await client.putObject(key, await readPart(file, 0, size));
      else await putParts(key, file, size, partBytes);
    } finally {
      await file.close();
    }
  }

  async function putParts(key: string, file: FileHandle, size: number, partBytes: number): Promise<void> {
    const uploadId = await client.getMultipartUploadId(key);
    try {
      const parts: UploadPart[] = [];
      for (let at = 0; at < size; at += partBytes) {
        const part = await readPart(file, at, Math.min(partBytes, size - at));
        parts.push(await again(() => client.uploadPart(key, uploadId, part, parts.length + 1)));
      }
      await client.completeMultipartUpload(key, uploadId, parts);
    } catch (error) {
      // What cannot be taken back now goes with the uploads that were never finished.
      await client.abortMultipartUpload(key, uploadId).catch(() => {});
      throw error;
    }
  }

  return {
    has: (sha256) => told(async () => (await client.objectExists(keyOf(sha256))) === true),

    put: (sha256, content: Content) =>
      told(async () => {
        const key = keyOf(sha256);
        if ((await client.objectExists(key)) === true) return;
        // An upload in parts may be answered with 200 and an error. Whoever writes the row looks whether it is there.
        if ('path' in content) await putFile(key, content.path);
        else await client.putObject(key, content);
      }),

    open: (sha256) =>
      told(async () => {
        const answer = await client.getObjectResponse(keyOf(sha256));
        if (answer === null) return null;
        return answer.body === null ? Readable.from([]) : Readable.fromWeb(answer.body as NodeStream);
      }),

    remove: (sha256) => told(async () => void (await client.deleteObject(keyOf(sha256)))),

    page: (cursor) =>
      told(async () => {
        const page = await client.listObjectsPaged('/', `${prefix}/`, PAGE, cursor ?? undefined);
        const contents = (page?.objects ?? []).flatMap(({ Key, LastModified }) => {
          const sha256 = Key.slice(prefix.length + 1);
          return isSha256(sha256) ? { sha256, storedAt: new Date(LastModified).getTime() } : [];
        });
        return { contents, cursor: page?.nextContinuationToken ?? null };
      }),

    async removeRemains(olderThanMs) {
      await removeOldFiles(gathered, olderThanMs);
      await told(() => endOldUploads(Date.now() - olderThanMs));
    },
  };

  /** Parts of an upload that was never finished are kept, and paid for, until somebody ends it. */
  async function endOldUploads(before: number): Promise<void> {
    const answer: unknown = await client.listMultipartUploads('/', '', 'GET', { prefix: `${prefix}/` });
    for (const { Key, UploadId, Initiated } of uploadsOf(answer)) {
      if (Key?.startsWith(`${prefix}/`) && UploadId && Date.parse(Initiated ?? '') <= before) {
        await client.abortMultipartUpload(Key, UploadId);
      }
    }
  }
}

interface Upload {
  Key?: string;
  UploadId?: string;
  Initiated?: string;
}

/** The client hands the answer on as it reads it: one element alone is no list. */
function uploadsOf(answer: unknown): Upload[] {
  const { ListMultipartUploadsResult: result } = answer as {
    ListMultipartUploadsResult?: { Upload?: Upload | Upload[] };
  };
  return [result?.Upload ?? []].flat();
}

async function readPart(file: FileHandle, at: number, length: number): Promise<Uint8Array> {
  const part = new Uint8Array(length);
  for (let filled = 0; filled < length; ) {
    const { bytesRead } = await file.read(part, filled, length - filled, at + filled);
    if (bytesRead === 0) throw new Error('a gathered content is shorter than it was');
    filled += bytesRead;
  }
  return part;
}

async function again<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries === TRIES || !isAway(error)) throw error;
    }
  }
}

/** A body may take as long as its reader does; what comes before it may not. */
const answeredInTime: typeof fetch = async (input, init) => {
  const late = new AbortController();
  const ms = init?.method === 'PUT' ? UPLOAD_MS : ANSWER_MS;
  const timer = setTimeout(() => late.abort(new Unavailable(`the artifact store did not answer for ${ms} ms`)), ms);
  try {
    return await fetch(input, { ...init, signal: late.signal });
  } finally {
    clearTimeout(timer);
  }
};

/** @throws Unavailable in the place of what says that the store is away, or overloaded */
async function told<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!isAway(error) || error instanceof Unavailable) throw error;
    throw new Unavailable('the artifact store cannot be reached now; try again', { cause: error });
  }
}

function isAway(error: unknown): boolean {
  if (error instanceof S3ServiceError) return error.status >= 500 || error.status === 429 || error.status === 408;
  // A fetch that failed on its way is a TypeError.
  return error instanceof Unavailable || error instanceof S3NetworkError || error instanceof TypeError;
}
