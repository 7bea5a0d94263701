import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { S3Options } from '../../src/artifacts/s3.ts';

interface StoredObject {
  data: Buffer;
  modified: Date;
}

/** A small S3: one bucket in memory, and the calls that Waymark makes. Every request must be signed with the right key. */
export interface S3Server {
  options: S3Options;
  objects: Map<string, StoredObject>;
  /** `PUT key`, `GET key?list-type=2`, in the order in which they came. */
  calls: string[];
  /** Uploads in parts that are neither finished nor given up. */
  uploads: Map<string, { key: string; initiated: Date; parts: Map<number, Buffer> }>;
  /** Answers the next requests for which it is true with this status in place of what they ask for. */
  fail: ((call: string) => number | null) | null;
  /** Runs before a call is answered. */
  before: ((call: string) => Promise<void>) | null;
}

/** Starts one; it is stopped after the test. */
export async function startS3(): Promise<S3Server> {
  const http = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  );
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const server: S3Server = {
    options: { url, bucket: 'things', region: 'eu-test-1', keyId: 'KEY', secret: 's3cret' },
    objects: new Map(),
    calls: [],
    uploads: new Map(),
    fail: null,
    before: null,
  };
  return server;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams, search } = new URL(request.url ?? '/', url);
    const body = await buffer(request);
    const key = decodeURIComponent(pathname).replace(/^\/things\/?/, '');
    const call = `${request.method} ${key}${search}`;
    server.calls.push(call);
    const answer = (status: number, text = '', headers: Record<string, string> = {}) =>
      response.writeHead(status, headers).end(text);
    if (!isSigned(request, server.options))
      return void answer(403, '<Error><Code>SignatureDoesNotMatch</Code></Error>');
    const failure = server.fail?.(call) ?? null;
    if (failure !== null) return void answer(failure, '<Error><Code>Planned</Code></Error>');
    await server.before?.(call);

    const uploadId = searchParams.get('uploadId');
    const upload = uploadId === null ? undefined : server.uploads.get(uploadId);
    const store = (data: Buffer) => void server.objects.set(key, { data, modified: new Date() });
    const object = server.objects.get(key);
    switch (request.method) {
      case 'PUT': {
        if (uploadId === null) store(body);
        else if (!upload) return void answer(404);
        else upload.parts.set(Number(searchParams.get('partNumber')), body);
        return void answer(200, '', { etag: `"${createHash('md5').update(body).digest('hex')}"` });
      }
      case 'POST': {
        if (uploadId === null) {
          const id = `upload-${server.uploads.size + 1}`;
          server.uploads.set(id, { key, initiated: new Date(), parts: new Map() });
          return void answer(200, xml('InitiateMultipartUploadResult', `<UploadId>${id}</UploadId>`), XML);
        }
        const parts = [...(upload?.parts ?? [])].sort(([a], [b]) => a - b);
        // The last part alone may be smaller than 5 MB.
        if (parts.slice(0, -1).some(([, part]) => part.length < 5 * 1024 * 1024)) return void answer(400);
        store(Buffer.concat(parts.map(([, part]) => part)));
        server.uploads.delete(uploadId);
        return void answer(200, xml('CompleteMultipartUploadResult', '<ETag>"whole"</ETag>'), XML);
      }
      case 'DELETE':
        if (uploadId === null) server.objects.delete(key);
        else server.uploads.delete(uploadId);
        return void answer(204);
      case 'HEAD':
        return void answer(object ? 200 : 404, '', object && { 'content-length': String(object.data.length) });
      default:
        if (searchParams.get('list-type') === '2') return void answer(200, list(searchParams), XML);
        if (searchParams.has('uploads')) return void answer(200, listUploads(), XML);
        if (!object) return void answer(404, '<Error><Code>NoSuchKey</Code></Error>');
        return void response.writeHead(200, { 'content-length': object.data.length }).end(object.data);
    }
  }

  function listUploads(): string {
    const uploads = [...server.uploads].map(
      ([id, { key, initiated }]) =>
        `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${initiated.toISOString()}</Initiated></Upload>`,
    );
    return xml('ListMultipartUploadsResult', uploads.join(''));
  }

  function list(params: URLSearchParams): string {
    const keys = [...server.objects.keys()].filter((k) => k.startsWith(params.get('prefix') ?? '')).sort();
    const from = Number(params.get('continuation-token') ?? 0);
    const to = from + Number(params.get('max-keys'));
    const contents = keys.slice(from, to).map((key) => {
      const { modified, data } = server.objects.get(key) as StoredObject;
      return `<Contents><Key>${key}</Key><LastModified>${modified.toISOString()}</LastModified><Size>${data.length}</Size></Contents>`;
    });
    const more = to < keys.length;
    const next = more ? `<NextContinuationToken>${to}</NextContinuationToken>` : '';
    return xml('ListBucketResult', `<IsTruncated>${more}</IsTruncated>${next}${contents.join('')}`);
  }
}

const XML = { 'content-type': 'application/xml' };
const xml = (name: string, inside: string) => `<?xml version="1.0" encoding="UTF-8"?><${name}>${inside}</${name}>`;
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

/** AWS Signature Version 4, over what the request says that it has signed. */
function isSigned(request: IncomingMessage, { keyId, region, secret }: S3Options): boolean {
  const authorization = request.headers.authorization ?? '';
  const [, scope = '', names = '', given = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([\da-f]{64})$/.exec(authorization) ?? [];
  const [key = '', day = '', ...rest] = scope.split('/');
  if (key !== keyId || rest.join('/') !== `${region}/s3/aws4_request` || !names.split(';').includes('host'))
    return false;
  const [path = '', query = ''] = (request.url ?? '').split('?', 2);
  const headers = names.split(';').map((name) => `${name}:${String(request.headers[name] ?? '').trim()}\n`);
  const params = query === '' ? [] : query.split('&').map((p) => (p.includes('=') ? p : `${p}=`));
  const payload = String(request.headers['x-amz-content-sha256']);
  const canonical = [request.method, path, params.sort().join('&'), headers.join(''), names, payload].join('\n');
  const toSign = [
    'AWS4-HMAC-SHA256',
    String(request.headers['x-amz-date']),
    [day, ...rest].join('/'),
    createHash('sha256').update(canonical).digest('hex'),
  ].join('\n');
  const signingKey = hmac(hmac(hmac(hmac(`AWS4${secret}`, day), region), 's3'), 'aws4_request');
  return timingSafeEqual(hmac(signingKey, toSign), Buffer.from(given, 'hex'));
}
