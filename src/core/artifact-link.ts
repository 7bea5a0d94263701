import { createHmac, timingSafeEqual } from 'node:crypto';
import { parseId, publicId } from './ids.ts';

/** What a link leads to. */
export interface ArtifactRef {
  /** Stored form. */
  jobId: string;
  name: string;
  sha256: string;
}

/** Where links to artifacts begin. */
export const ARTIFACTS_PATH = '/artifacts/';

/** How long a link lasts at least; up to a minute longer. */
export const LINK_MS = 15 * 60_000;
/** A link stays the same for this long: a page that reads a job again and again does not get a new one each time. */
const STEP_MS = 60_000;

/** Path and query of a link to one content of one artifact. It needs no token: whoever has it may follow it until it expires. */
export function artifactPath(secret: string, ref: ArtifactRef, now: number): string {
  const expires = Math.ceil(now / STEP_MS) * STEP_MS + LINK_MS;
  const job = publicId('Job', ref.jobId);
  const query = new URLSearchParams({
    sha256: ref.sha256,
    expires: String(expires),
    signature: signature(secret, ref, expires),
  });
  return `${ARTIFACTS_PATH}${job}/${encodeURIComponent(ref.name)}?${query}`;
}

/** What a path with query says, once its signature is found to be good: null when it is not, or is no link at all. */
export function readArtifactPath(
  secret: string,
  pathAndQuery: string,
  now: number,
): (ArtifactRef & { expires: number }) | null {
  const link = parse(pathAndQuery);
  if (link === null || !(link.expires > now)) return null;
  const right = Buffer.from(signature(secret, link, link.expires));
  const given = Buffer.from(link.signature);
  return right.length === given.length && timingSafeEqual(right, given) ? link : null;
}

function signature(secret: string, { jobId, name, sha256 }: ArtifactRef, expires: number): string {
  // A JSON list, so that no two of these run together into the same text.
  return createHmac('sha256', secret)
    .update(JSON.stringify([jobId, name, sha256, expires]))
    .digest('base64url');
}

function parse(pathAndQuery: string): (ArtifactRef & { expires: number; signature: string }) | null {
  const [path = '', query = ''] = pathAndQuery.split('?', 2);
  const parts = path.startsWith(ARTIFACTS_PATH) ? path.slice(ARTIFACTS_PATH.length).split('/') : [];
  const [job, name] = parts;
  const params = new URLSearchParams(query);
  if (parts.length !== 2 || !job || !name) return null;
  try {
    return {
      jobId: parseId('Job', job),
      name: decodeURIComponent(name),
      sha256: params.get('sha256') ?? '',
      expires: Number(params.get('expires') ?? Number.NaN),
      signature: params.get('signature') ?? '',
    };
  } catch {
    return null;
  }
}
