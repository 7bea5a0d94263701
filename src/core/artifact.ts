import type { Timestamp } from './job.ts';
import { textProblem } from './json.ts';

/** Where the bytes of an artifact are: in the data directory, in Postgres, or in an S3-compatible store. */
export type ArtifactLocation = 'file' | 'database' | 's3';

/** A deliverable of a job. What it says is fixed by its content: the same name stored anew is another record. */
export interface ArtifactRow {
  /** Stored form. */
  jobId: string;
  name: string;
  mediaType: string;
  bytes: number;
  /** Hex. Contents are kept under it, each once whoever needs it. */
  sha256: string;
  location: ArtifactLocation;
  createdAt: Timestamp;
}

/** What a handler gets for what it stored. */
export interface ArtifactRecord {
  name: string;
  mediaType: string;
  bytes: number;
  /** Hex. */
  sha256: string;
  createdAt: Date;
}

/** Most bytes of a content that Postgres is given; larger ones need an S3-compatible store. */
export const MAX_BYTES_IN_DATABASE = 16 * 1024 * 1024;

export const MAX_ARTIFACT_NAME = 200;
const MAX_MEDIA_TYPE = 200;

// Type and subtype with parameters, as in RFC 9110: it becomes a header as it is.
const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(\\s*;\\s*${TOKEN}=(${TOKEN}|"[ !#-\\[\\]-~]*"))*$`);

/** The rule that the name of an artifact breaks, or null. */
export function artifactNameProblem(name: unknown): string | null {
  if (typeof name !== 'string') return `must be a string, not ${name === null ? 'null' : typeof name}`;
  if (name === '') return 'must not be empty';
  if (name.length > MAX_ARTIFACT_NAME) return `has at most ${MAX_ARTIFACT_NAME} characters, not ${name.length}`;
  // It is a part of a URL, where these two mean directories.
  if (name === '.' || name === '..') return 'must not be "." or ".."';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0001-\u001f\u007f]/.test(name)) return 'must not contain control characters';
  return textProblem(name);
}

/** The rule that a media type breaks, or null. */
export function mediaTypeProblem(mediaType: unknown): string | null {
  if (typeof mediaType !== 'string') {
    return `must be a string, not ${mediaType === null ? 'null' : typeof mediaType}`;
  }
  if (mediaType.length > MAX_MEDIA_TYPE) return `has at most ${MAX_MEDIA_TYPE} characters, not ${mediaType.length}`;
  return MEDIA_TYPE.test(mediaType) ? null : 'must be a media type such as "text/csv" or "text/html; charset=utf-8"';
}

/** Whether a text can be the sha256 of a content: names of files and keys that are none are not ours. */
export function isSha256(text: string): boolean {
  return /^[\da-f]{64}$/.test(text);
}
