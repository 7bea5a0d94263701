import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createWaymark, defineTask, type Waymark } from '../../src/index.ts';

const delivers = defineTask({
  name: 'delivers',
  run: (ctx) => ctx.artifact('out.csv', 'a,b\n', { mediaType: 'text/csv' }),
});

/** Address and answer of the first artifact of a job, by the API. */
async function download(url: string, id: string): Promise<string> {
  const query = `{ job(id: "${id}") { artifacts { url } } }`;
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
  const { data } = (await answer.json()) as { data: { job: { artifacts: { url: string }[] } } };
  return (await fetch(data.job.artifacts[0]?.url ?? '')).text();
}

test('embedded, contents are files of the data directory: there after a restart, and without what was half stored', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'waymark-test-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const open = (): Promise<Waymark> => createWaymark({ databaseUrl: null, redisUrl: null, dataDir, poll: '100ms' });
  const contents = async () =>
    (await readdir(join(dataDir, 'artifacts'), { recursive: true })).filter((name) => /[\da-f]{64}$/.test(name));

  const first = await open();
  await first.worker({ tasks: [delivers] }).start();
  const { job } = await first.submit(delivers);
  await expect.poll(async () => (await first.job(job.id))?.state, { timeout: 20_000 }).toBe('COMPLETED');
  expect(await contents()).toHaveLength(1);
  await first.close();

  const incoming = join(dataDir, 'artifacts', 'incoming');
  await mkdir(incoming, { recursive: true });
  await writeFile(join(incoming, 'of-a-killed-process'), 'half');
  const second = await open();
  onTestFinished(() => second.close());
  expect(await readdir(incoming)).toEqual([]);
  const { url } = await second.serve({ port: 0 });
  expect(await download(url, job.id)).toBe('a,b\n');
}, 90_000);
