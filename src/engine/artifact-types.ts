import type { Readable } from 'node:stream';
import type { Content } from '../artifacts/content-store.ts';
import type { GatherOptions } from '../artifacts/gather.ts';
import type { ArtifactRow } from '../core/artifact.ts';
import type { ArtifactRef } from '../core/artifact-link.ts';

/** An artifact to be stored, whose content has been gathered. */
export interface ArtifactWrite {
  jobId: string;
  attempt: number;
  name: string;
  mediaType: string;
  bytes: number;
  sha256: string;
  content: Content;
}

/** How artifacts come from handlers to their store. */
export interface ArtifactVerbs {
  /** How a content is gathered before it is stored: its name is its sha256, and known only in the end. */
  readonly gathering: GatherOptions;
  /**
   * Keeps a content and writes its record and event in the place of the job's former one of that name. The same content
   * under the same name is a repetition: no event, and the record is as it was. @throws LeaseLost, Unavailable
   */
  storeArtifact(write: ArtifactWrite): Promise<ArtifactRow>;
}

/** A content that is open for reading. */
export interface OpenArtifact extends ArtifactRow {
  stream: Readable;
  /** When the link that led to it expires, in milliseconds since 1970. */
  expires: number;
}

/** Links to artifacts, and what they lead to. */
export interface ArtifactsEngine {
  /** Path and query of a link that needs no token and lasts about 15 minutes. */
  link(artifact: ArtifactRef): Promise<string>;
  /**
   * What a link leads to; `refused`: its signature is wrong, or it has expired. Null: there is no such artifact any more.
   * @throws Unavailable, Error when the content is not where its record says
   */
  open(pathAndQuery: string): Promise<OpenArtifact | 'refused' | null>;
}
