import type { Readable } from 'node:stream';

/** A content on its way to a store: in memory, or gathered in a file. */
export type Content = Uint8Array | { path: string };

/** A place outside the database for the contents of artifacts, each under its sha256. */
export interface ContentStore {
  has(sha256: string): Promise<boolean>;
  /**
   * Keeps a content; it is durable, and whole, when this returns. One that is there already stays. The gathered file
   * stays too, where that costs nothing: the caller removes it. @throws Unavailable when the store is away
   */
  put(sha256: string, content: Content): Promise<void>;
  /** Its bytes, read no faster than they are taken; null when it is not there. @throws Unavailable */
  open(sha256: string): Promise<Readable | null>;
  /** A second call does nothing. @throws Unavailable */
  remove(sha256: string): Promise<void>;
  /** Some of its contents, going on where `cursor` of an earlier page stood; the last page has none. */
  page(cursor: string | null): Promise<{ contents: StoredContent[]; cursor: string | null }>;
  /** Removes what processes left that were killed while they stored something, if it is older than that. */
  removeRemains(olderThanMs: number): Promise<void>;
}

export interface StoredContent {
  sha256: string;
  /** Milliseconds since 1970. */
  storedAt: number;
}
