import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { newUuid, publicId } from '../../src/core/ids.ts';
import { databases } from '../support/database.ts';
import { insertJob, insertWorker } from '../support/factory.ts';
import { type Service, startService } from './service.ts';

const JOB = `query ($id: ID!) { job(id: $id) {
  artifacts { name mediaType bytes sha256 url createdAt }
  events { nodes { summary ... on ArtifactStored { artifact { name bytes sha256 url } } } }
} }`;

async function store(service: Service, jobId: string, name: string, content: Uint8Array, mediaType: string) {
  const sha256 = createHash('sha256').update(content).digest('hex');
  const { length: bytes } = content;
  await service.engine.execution.storeArtifact({ jobId, attempt: 1, name, mediaType, bytes, sha256, content });
}

async function running(service: Service): Promise<string> {
  const db = service.database.work;
  return insertJob(db, { state: 'RUNNING', workerId: await insertWorker(db) });
}

async function artifactsOf(service: Service, jobId: string) {
  const { data, errors } = await service.post(JOB, { id: publicId('Job', jobId) });
  expect(errors).toBeUndefined();
  return data.job as { artifacts: { name: string; url: string; bytes: number }[]; events: { nodes: object[] } };
}

describe.each(databases())('artifacts of the API on $name', ({ open }) => {
  test('are listed with links, which a browser can follow without a token', async () => {
    const service = await startService(open);
    const id = await running(service);
    const table = Buffer.from('a,b\n1,2\n');
    await store(service, id, 'out/täglich "1".csv', table, 'text/csv; charset=utf-8');
    await store(service, id, 'empty', Buffer.alloc(0), 'text/plain');
    const { artifacts, events } = await artifactsOf(service, id);
    expect(artifacts).toEqual([
      expect.objectContaining({ name: 'empty', bytes: 0 }),
      {
        name: 'out/täglich "1".csv',
        mediaType: 'text/csv; charset=utf-8',
        bytes: 8,
        sha256: createHash('sha256').update(table).digest('hex'),
        url: expect.stringContaining(`${service.url}/artifacts/job_`),
        createdAt: expect.stringMatching(/Z$/),
      },
    ]);
    expect(events.nodes).toContainEqual({
      summary: 'Artifact out/täglich "1".csv stored',
      artifact: expect.objectContaining({ name: 'out/täglich "1".csv', bytes: 8, url: artifacts[1]?.url }),
    });

    const answer = await fetch(artifacts[1]?.url ?? '', { headers: { origin: 'https://elsewhere.example' } });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe('a,b\n1,2\n');
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-length': '8',
      'content-disposition': `attachment; filename="t_glich _1_.csv"; filename*=UTF-8''t%C3%A4glich%20%221%22.csv`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringMatching(/^sandbox; default-src 'none'/),
      'referrer-policy': 'no-referrer',
    });
    expect(answer.headers.get('cache-control')).toMatch(/^private, max-age=\d+, immutable$/);
    const empty = await fetch(artifacts[0]?.url ?? '');
    expect(empty.headers.get('content-disposition')).toMatch(/^inline; /);
    expect(await empty.text()).toBe('');
    const head = await fetch(artifacts[1]?.url ?? '', { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '8', '']);
    expect((await fetch(artifacts[1]?.url ?? '', { method: 'POST' })).status).toBe(405);
    expect(service.errors).toEqual([]);
  });

  test('a wrong or expired signature is 403, what is gone 404', async () => {
    const service = await startService(open);
    const id = await running(service);
    await store(service, id, 'page.html', Buffer.from('<script>alert(1)</script>'), 'text/html');
    const url = (await artifactsOf(service, id)).artifacts[0]?.url ?? '';
    const status = async (of: string) => (await fetch(of)).status;
    expect(await status(url)).toBe(200);
    expect(await status(url.replace(/expires=\d+/, `expires=${Date.now() - 1}`))).toBe(403);
    const other = url.replace(/signature=(.)/, (_, first) => `signature=${first === 'A' ? 'B' : 'A'}`);
    expect(await status(other)).toBe(403);
    expect(await status(url.replace(/\?.*/, ''))).toBe(403);
    expect(await status(url.replace('page', 'other'))).toBe(403);
    const unknown = await service.engine.artifacts.link({ jobId: newUuid(), name: 'a', sha256: 'a'.repeat(64) });
    expect(await status(service.url + unknown)).toBe(404);
    // Stored anew under its name: the link led to another content.
    await store(service, id, 'page.html', Buffer.from('<p>'), 'text/html');
    expect(await status(url)).toBe(404);
  });

  test('a large one is sent whole, and given up when its client goes', async () => {
    const service = await startService(open);
    const id = await running(service);
    const content = randomBytes(9 * 1024 * 1024 + 7);
    await store(service, id, 'large', content, 'application/octet-stream');
    const url = (await artifactsOf(service, id)).artifacts[0]?.url ?? '';
    const whole = Buffer.from(await (await fetch(url)).arrayBuffer());
    expect(whole.equals(content)).toBe(true);
    await new Promise<void>((resolve) => {
      const leaving = request(url, (answer) => answer.once('data', () => leaving.destroy()));
      leaving.once('close', () => resolve()).on('error', () => {});
      leaving.end();
    });
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
    expect(service.errors).toEqual([]);
  });

  test('links begin with the public address, where there is one', async () => {
    const service = await startService(open, { server: { publicUrl: 'https://jobs.example/waymark/' } });
    const id = await running(service);
    await store(service, id, 'a', Buffer.from('x'), 'text/plain');
    const { artifacts } = await artifactsOf(service, id);
    expect(artifacts[0]?.url).toMatch(/^https:\/\/jobs\.example\/waymark\/artifacts\/job_/);
  });
});
