import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { NonRetryableError } from '../core/handler-errors.ts';
import type { Content } from './content-store.ts';
import { openGathering, removeGathered } from './gathering-files.ts';

/** What a handler may give as the content of an artifact. Texts become UTF-8. */
export type ArtifactData =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | AsyncIterable<Uint8Array | string>
  | ReadableStream<Uint8Array | string>;

/** How contents are gathered: what goes to a file, and what is too much. In bytes. */
export interface GatherOptions {
  /** Where larger ones are gathered. */
  directory: string;
  /** Contents up to this size stay in memory. */
  memoryBytes: number;
  /** Null: no limit but the disk's. */
  maxBytes: number | null;
}

/** A content whose end has been seen. */
export interface Gathered {
  bytes: number;
  /** Hex. */
  sha256: string;
  content: Content;
  /** Gives its file back, if there is one; to be called in the end, also when a store has taken it. */
  release(): Promise<void>;
}

/** Larger pieces are taken apart: hashing one would hold the event loop up. */
const PIECE_BYTES = 1024 * 1024;

/**
 * Reads a content to its end and learns its size and sha256. Never more of it is in memory than `memoryBytes` and one
 * piece of its source.
 * @param name of the artifact, for messages
 * @param guard waits for the next piece; when it rejects, the source is closed and nothing is left behind
 * @throws NonRetryableError ARTIFACT_TOO_LARGE that names limit and setting, or INVALID_ARTIFACT for what is no content
 */
export async function gather(
  data: ArtifactData,
  name: string,
  options: GatherOptions,
  guard: <T>(step: Promise<T>) => Promise<T>,
): Promise<Gathered> {
  const sink = new Sink(name, options);
  const pieces = piecesOf(data, name);
  try {
    for (;;) {
      const next = await guard(pieces.next());
      if (next.done) break;
      await sink.write(next.value);
    }
    return await sink.end();
  } catch (error) {
    // Not waited for: a source that hangs must not keep a handler that has to stop.
    void pieces.return(undefined).catch(() => {});
    await sink.abandon();
    throw error;
  }
}

/** In memory first; in a file from the moment on when it is too much for that. */
class Sink {
  readonly #name: string;
  readonly #options: GatherOptions;
  readonly #hash = createHash('sha256');
  #bytes = 0;
  #memory: Uint8Array[] = [];
  #gathering: { path: string; file: FileHandle } | null = null;

  constructor(name: string, options: GatherOptions) {
    this.#name = name;
    this.#options = options;
  }

  async write(piece: Uint8Array): Promise<void> {
    this.#bytes += piece.byteLength;
    const { maxBytes, memoryBytes, directory } = this.#options;
    if (maxBytes !== null && this.#bytes > maxBytes) throw tooLarge(this.#name, maxBytes);
    this.#hash.update(piece);
    if (this.#gathering === null && this.#bytes <= memoryBytes) {
      // A copy: a source may use the memory of its pieces again.
      this.#memory.push(Buffer.from(piece));
      return;
    }
    this.#gathering ??= await openGathering(directory);
    for (const kept of [...this.#memory.splice(0), piece]) await writeAll(this.#gathering.file, kept);
  }

  async end(): Promise<Gathered> {
    const { path } = this.#gathering ?? { path: null };
    await this.#gathering?.file.close();
    this.#gathering = null;
    return {
      bytes: this.#bytes,
      sha256: this.#hash.digest('hex'),
      content: path === null ? Buffer.concat(this.#memory) : { path },
      release: () => (path === null ? Promise.resolve() : removeGathered(path)),
    };
  }

  async abandon(): Promise<void> {
    const gathering = this.#gathering;
    if (gathering === null) return;
    await gathering.file.close().catch(() => {});
    await removeGathered(gathering.path);
  }
}

async function writeAll(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.byteLength; ) at += (await file.write(piece, at)).bytesWritten;
}

function tooLarge(name: string, maxBytes: number): NonRetryableError {
  return new NonRetryableError(
    `artifact ${JSON.stringify(name)} is larger than ${maxBytes} bytes, the most that is kept in Postgres; ` +
      'set WAYMARK_S3_URL to keep larger ones in an S3-compatible store',
    { code: 'ARTIFACT_TOO_LARGE' },
  );
}

async function* piecesOf(data: ArtifactData, name: string): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of chunksOf(data, name)) {
    const bytes = bytesOf(chunk, name);
    for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
  }
}

function chunksOf(data: ArtifactData, name: string): AsyncIterable<unknown> | unknown[] {
  if (typeof data === 'string' || ArrayBuffer.isView(data) || data instanceof ArrayBuffer) return [data];
  if (data instanceof Blob) return data.stream();
  if (typeof (data as AsyncIterable<unknown> | null)?.[Symbol.asyncIterator] === 'function') return data;
  throw invalid(name, data);
}

function bytesOf(chunk: unknown, name: string): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk, 'utf8');
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk);
  if (ArrayBuffer.isView(chunk)) return new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  throw invalid(name, chunk);
}

function invalid(name: string, value: unknown): NonRetryableError {
  const what = value === null ? 'null' : typeof value;
  return new NonRetryableError(
    `the data of artifact ${JSON.stringify(name)} must be a string, bytes, a Blob, or an async iterable or stream of ` +
      `bytes, not ${what}`,
    { code: 'INVALID_ARTIFACT' },
  );
}
