import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { ContentStore } from '../artifacts/content-store.ts';
import { fileStore, incomingOf } from '../artifacts/files.ts';
import type { GatherOptions } from '../artifacts/gather.ts';
import { type S3Options, s3Store } from '../artifacts/s3.ts';
import { type ArtifactLocation, MAX_BYTES_IN_DATABASE } from '../core/artifact.ts';
import { contentSlice } from '../db/reads/artifacts.ts';
import type { Executor } from '../db/types.ts';

/** Where the contents of artifacts are kept. */
export interface ArtifactPlaces {
  /** A directory of this process alone, for all of them. Left out: in the database, up to its limit. */
  directory?: string | null;
  /** For those that are too large for the database. */
  s3?: S3Options | null;
  /** Most bytes in the database; for tests. */
  maxBytesInDatabase?: number;
  /** How young a content outside the database is left alone though no artifact needs it; for tests. */
  graceMs?: number;
}

/** Large enough for one slice to be most contents, small enough for a hundred readers at once. */
const SLICE_BYTES = 4 * 1024 * 1024;

/** The contents of this process's settings: which place is for what, and how each is reached. */
export class ArtifactContents {
  readonly gathering: GatherOptions;
  readonly #places: ArtifactPlaces;
  readonly #files: ContentStore | null;
  readonly #secret: () => Promise<string>;
  #s3: Promise<ContentStore> | null = null;

  /** @param secret what all processes of the database share, and no other database has */
  constructor(places: ArtifactPlaces, secret: () => Promise<string>) {
    const { directory = null, s3 = null, maxBytesInDatabase = MAX_BYTES_IN_DATABASE } = places;
    this.#places = places;
    this.#secret = secret;
    this.#files = directory === null ? null : fileStore(directory);
    this.gathering =
      directory === null
        ? {
            directory: gatheredHere(),
            memoryBytes: maxBytesInDatabase,
            maxBytes: s3 === null ? maxBytesInDatabase : null,
          }
        : { directory: incomingOf(directory), memoryBytes: 0, maxBytes: null };
  }

  /** Where a content of this size goes. */
  placeFor(bytes: number): ArtifactLocation {
    if (this.#files) return 'file';
    return bytes <= this.gathering.memoryBytes || !this.#places.s3 ? 'database' : 's3';
  }

  /** The store of a place outside the database; null when it is none, or the settings do not name it. */
  async store(location: ArtifactLocation): Promise<ContentStore | null> {
    if (location === 'file') return this.#files;
    const { s3 } = this.#places;
    if (location === 'database' || !s3) return null;
    this.#s3 ??= this.#secret().then((secret) => s3Store(s3, prefixOf(secret), gatheredHere()));
    this.#s3.catch(() => {
      this.#s3 = null;
    });
    return this.#s3;
  }

  /** The bytes of a content, read no faster than they are taken; null when they are not there. */
  async open(db: Executor, location: ArtifactLocation, sha256: string): Promise<Readable | null> {
    if (location !== 'database') return (await (await this.store(location))?.open(sha256)) ?? null;
    const first = await contentSlice(db, sha256, 0, SLICE_BYTES);
    return first && Readable.from(slices(db, sha256, first), { objectMode: false });
  }
}

async function* slices(db: Executor, sha256: string, first: Uint8Array): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let slice: Uint8Array | null = first; slice.byteLength > 0; ) {
    yield slice;
    at += slice.byteLength;
    if (slice.byteLength < SLICE_BYTES) return;
    slice = await contentSlice(db, sha256, at, SLICE_BYTES);
    if (slice === null) throw new Error('the content was removed while it was read');
  }
}

/** A bucket may serve several databases: each has a folder of its own, and clears up only there. */
function prefixOf(secret: string): string {
  return `waymark/${createHash('sha256').update(`prefix ${secret}`).digest('hex').slice(0, 24)}`;
}

/** For the user of this process alone: what lies there is not everybody's to read. */
function gatheredHere(): string {
  return join(tmpdir(), `waymark-artifacts-${process.getuid?.() ?? 'user'}`);
}
