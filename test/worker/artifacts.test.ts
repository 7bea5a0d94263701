import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MAX_BYTES_IN_DATABASE } from '../../src/core/artifact.ts';
import type { AnyTask } from '../../src/core/task.ts';
import type { HandlerContext } from '../../src/worker/context.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { loadTasks } from '../../src/worker/tasks-module.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type Bench, bench } from './bench.ts';

const FILE = fileURLToPath(new URL('./fixtures/isolated.ts', import.meta.url));

function task(run: (ctx: HandlerContext) => unknown, over: { maxAttempts?: number } = {}): AnyTask {
  return defineTask({
    name: 'delivers',
    backoff: { type: 'fixed', delay: '10ms', jitter: 0 },
    ...over,
    run: (ctx) => run(ctx as HandlerContext) as null,
  }) as AnyTask;
}

async function read(b: Bench, jobId: string, { name, sha256 }: { name: string; sha256: string }): Promise<string> {
  const opened = await b.engine.artifacts.open(await b.engine.artifacts.link({ jobId, name, sha256 }));
  if (opened === null || opened === 'refused') throw new Error(`${name} is not there`);
  return (await buffer(opened.stream)).toString();
}

const stored = async (b: Bench, id: string) => (await b.events(id)).filter((e) => e.type === 'ArtifactStored');

describe.each(databases())('ctx.artifact on $name', (store) => {
  test('stores whatever it is given and returns its record', async () => {
    const b = await bench(store);
    const delivers = task(async (ctx) => [
      await ctx.artifact('text', 'grüße'),
      await ctx.artifact('table.csv', Buffer.from('a,b\n'), { mediaType: 'text/csv' }),
      await ctx.artifact('page', new Blob(['<p>'], { type: 'text/html' })),
      await ctx.artifact(
        'stream',
        (async function* () {
          for (const n of [1, 2, 3]) yield `${n}\n`;
        })(),
      ),
    ]);
    await b.work([delivers]);
    const id = await b.submit(delivers);
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED' });
    const records = (await b.result(id)) as { name: string; sha256: string }[];
    expect(records).toMatchObject([
      { name: 'text', mediaType: 'text/plain; charset=utf-8', bytes: 7, createdAt: expect.any(String) },
      { name: 'table.csv', mediaType: 'text/csv', bytes: 4 },
      { name: 'page', mediaType: 'text/html', bytes: 3 },
      { name: 'stream', mediaType: 'application/octet-stream', bytes: 6 },
    ]);
    expect(await Promise.all(records.map((r) => read(b, id, r)))).toEqual(['grüße', 'a,b\n', '<p>', '1\n2\n3\n']);
    expect(await stored(b, id)).toHaveLength(4);
  });

  test('a later attempt that stores the same stores it once; another content replaces it', async () => {
    const b = await bench(store);
    const delivers = task(async (ctx) => {
      await ctx.artifact('same', 'as before');
      const record = await ctx.artifact('changes', `attempt ${ctx.job.attempt}`);
      if (ctx.job.attempt === 1) throw new Error('once more');
      return record;
    });
    await b.work([delivers]);
    const id = await b.submit(delivers);
    await b.ends(id);
    expect((await stored(b, id)).map((e) => [e.data.name, e.attempt])).toEqual([
      ['same', 1],
      ['changes', 1],
      ['changes', 2],
    ]);
    const record = (await b.result(id)) as { name: string; sha256: string };
    expect(await read(b, id, record)).toBe('attempt 2');
  });

  test('calls of one name take effect in the order in which they were made', async () => {
    const b = await bench(store);
    const delivers = task(async (ctx) => {
      async function* slow() {
        await ctx.step('a while', () => null);
        yield 'first';
      }
      const [, last] = await Promise.all([ctx.artifact('a', slow()), ctx.artifact('a', 'second')]);
      return last;
    });
    await b.work([delivers]);
    const id = await b.submit(delivers);
    await b.ends(id);
    expect(await read(b, id, (await b.result(id)) as { name: string; sha256: string })).toBe('second');
  });

  test.each([
    ['a content over the limit', (ctx: HandlerContext) => ctx.artifact('a', zeros()), 'ARTIFACT_TOO_LARGE'],
    ['a name that is none', (ctx: HandlerContext) => ctx.artifact('..', 'x'), 'INVALID_ARTIFACT'],
    [
      'a media type that is none',
      (ctx: HandlerContext) => ctx.artifact('a', 'x', { mediaType: 'text\r\nx: y' }),
      'INVALID_ARTIFACT',
    ],
    ['data that is none', (ctx: HandlerContext) => ctx.artifact('a', 7 as unknown as string), 'INVALID_ARTIFACT'],
  ])('%s fails the job at once', async (_, run, code) => {
    const b = await bench(store);
    const delivers = task(run);
    await b.work([delivers]);
    const id = await b.submit(delivers);
    expect(await b.ends(id)).toMatchObject({ state: 'FAILED', attempt: 1, error: { code } });
    expect(await stored(b, id)).toEqual([]);
  });

  test.each(['memory', 'files'])('a handler with isolation "thread" has it, too, by way of %s', async (way) => {
    const directory = await mkdtemp(join(tmpdir(), 'waymark-test-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const b = await bench(store, { artifacts: way === 'files' ? { directory } : {} });
    const { tasks } = await loadTasks(FILE);
    const delivers = tasks.find((t) => t.name === 'delivers') as AnyTask;
    await b.work([delivers], { databaseUrl: b.database.url ?? null });
    const id = await b.submit(delivers, { text: 'from a thread' });
    expect(await b.ends(id)).toMatchObject({ state: 'COMPLETED' });
    const records = (await b.result(id)) as { name: string; sha256: string }[];
    expect(await Promise.all(records.map((r) => read(b, id, r)))).toEqual([
      'from a thread',
      'from a thread\n'.repeat(9),
    ]);
    expect(await stored(b, id)).toHaveLength(2);
    if (way === 'files') expect(await readdir(join(directory, 'incoming'))).toEqual([]);
  });

  test('an attempt that is canceled while its source hangs ends, and leaves nothing behind', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'waymark-test-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const b = await bench(store, { artifacts: { directory } });
    const delivers = task((ctx) =>
      ctx.artifact(
        'a',
        (async function* () {
          yield randomBytes(1_000);
          await new Promise(() => {});
        })(),
      ),
    );
    await b.work([delivers]);
    const id = await b.submit(delivers);
    const incoming = join(directory, 'incoming');
    await eventually(async () => expect(await readdir(incoming)).toHaveLength(1));
    await b.engine.jobs.cancel({ tenant: 'default', actor: 'user:local' }, id);
    expect(await b.ends(id)).toMatchObject({ state: 'CANCELED' });
    await eventually(async () => expect(await readdir(incoming)).toEqual([]));
  });
});

async function* zeros() {
  const piece = Buffer.alloc(1024 * 1024);
  for (let n = 0; n <= MAX_BYTES_IN_DATABASE / piece.length; n++) yield piece;
}
