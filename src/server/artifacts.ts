import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { Unavailable } from '../core/errors.ts';
import type { ArtifactsEngine, OpenArtifact } from '../engine/artifact-types.ts';
import { sendText } from './pages.ts';

/** What browsers may show; all else they save. Documents of a sandbox cannot use the viewer of PDF. */
const SHOWN = /^(image\/(png|jpeg|gif|webp|avif)|text\/plain|application\/json|audio\/|video\/)/i;

/** Handlers store what they like, and it comes from the origin of the API: it must not be able to do anything here. */
const POLICY = "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'";

/** A client that takes nothing for so long holds a file or a connection for nobody. */
const STALL_MS = 60_000;

/**
 * Answers `GET /artifacts/…`. The link's signature is all that it takes, so that a browser can follow it: 403 when it is
 * wrong or has expired, 404 when the artifact is gone, 503 while its store is away.
 */
export async function sendArtifact(
  request: IncomingMessage,
  response: ServerResponse,
  artifacts: ArtifactsEngine,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return sendText(response, 405, 'only GET and HEAD');
  }
  const artifact = await artifacts.open(request.url ?? '').catch((error: unknown) => {
    if (error instanceof Unavailable) return 'away' as const;
    throw error;
  });
  if (artifact === 'away') return sendText(response, 503, 'the store cannot be reached now; try again');
  if (artifact === 'refused') return sendText(response, 403, 'this link is not valid, or no longer; ask for a new one');
  if (artifact === null) return sendText(response, 404, 'not found');
  const { stream } = artifact;
  response.writeHead(200, headersOf(artifact));
  if (request.method === 'HEAD' || response.destroyed) {
    stream.destroy();
    return void response.end();
  }
  response.setTimeout(STALL_MS, () => response.destroy());
  try {
    await pipeline(stream, response);
  } catch (error) {
    // What broke off because the client went is no fault.
    if (!response.destroyed || !isHangUp(error)) throw error;
  }
}

function headersOf({ name, mediaType, bytes, sha256, expires }: OpenArtifact): Record<string, string | number> {
  const seconds = Math.max(0, Math.floor((expires - Date.now()) / 1_000));
  return {
    'content-type': mediaType,
    'content-length': bytes,
    'content-disposition': `${SHOWN.test(mediaType) ? 'inline' : 'attachment'}; ${fileName(name)}`,
    'content-security-policy': POLICY,
    'cache-control': `private, max-age=${seconds}, immutable`,
    etag: `"${sha256}"`,
    // The address is a key for as long as it lasts.
    'referrer-policy': 'no-referrer',
  };
}

/** By RFC 6266: a plain form for old clients, and the name as it is. */
function fileName(name: string): string {
  const last = name.split(/[/\\]/).findLast((part) => part !== '') ?? 'artifact';
  const plain = last.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(last).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return `filename="${plain}"; filename*=UTF-8''${encoded}`;
}

function isHangUp(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ECONNRESET' || code === 'EPIPE';
}
