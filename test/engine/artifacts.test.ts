import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { gather } from '../../src/artifacts/gather.ts';
import type { ArtifactRow } from '../../src/core/artifact.ts';
import { LeaseLost, Unavailable } from '../../src/core/errors.ts';
import type { JobEvent } from '../../src/core/event.ts';
import { eventsOfJobs } from '../../src/db/reads/events.ts';
import type { ArtifactPlaces } from '../../src/engine/artifact-contents.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { deferred, eventually } from '../support/eventually.ts';
import { engineOptions, insertJob, insertWorker } from '../support/factory.ts';
import { seededRandom } from '../support/random.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';

const LIMIT = 10_000;
const PLACES = ['database', 'file', 's3'] as const;

describe.each(databases())('artifacts on $name', ({ open }) => {
  describe.each(PLACES)('in the place %s', (place) => {
    let database: TestDatabase;
    let engine: Engine;
    let s3: S3Server;
    let directory: string;
    let workerId: string;

    function another(places: ArtifactPlaces = {}): Engine {
      return createEngine({
        database,
        channel: createMemoryChannel(),
        options: engineOptions({ retainMs: { completed: 0, failed: 0, canceled: 0, keys: 0 } }),
        artifacts: {
          graceMs: 0,
          ...(place === 'file' ? { directory } : {}),
          ...(place === 's3' ? { s3: s3.options, maxBytesInDatabase: 0 } : { maxBytesInDatabase: LIMIT }),
          ...places,
        },
      });
    }

    beforeEach(async () => {
      database = await open();
      s3 = await startS3();
      directory = await mkdtemp(join(tmpdir(), 'waymark-test-'));
      onTestFinished(() => rm(directory, { recursive: true, force: true }));
      engine = another();
      workerId = await insertWorker(database.work);
    });

    const running = () => insertJob(database.work, { state: 'RUNNING', workerId });

    async function store(
      jobId: string,
      name: string,
      data: Uint8Array | string,
      { attempt = 1, mediaType = 'text/plain', by = engine } = {},
    ): Promise<ArtifactRow> {
      const gathered = await gather(data, name, by.execution.gathering, (step) => step);
      try {
        return await by.execution.storeArtifact({ jobId, attempt, name, mediaType, ...gathered });
      } finally {
        await gathered.release();
      }
    }

    const stored = async (jobId: string): Promise<JobEvent[]> =>
      (await eventsOfJobs(database.read, 'default', [jobId], { after: 0, limit: 100 })).filter(
        (event) => event.type === 'ArtifactStored',
      );

    async function read(jobId: string, name: string, sha256: string): Promise<string | null> {
      const opened = await engine.artifacts.open(await engine.artifacts.link({ jobId, name, sha256 }));
      if (opened === 'refused') throw new Error('refused');
      return opened && (await buffer(opened.stream)).toString('latin1');
    }

    const finish = (jobId: string) => engine.execution.settle({ jobId, attempt: 1, outcome: 'SUCCEEDED' });

    /** How many contents there are in the place. */
    async function contents(): Promise<number> {
      if (place === 's3') return s3.objects.size;
      if (place === 'file') {
        const names = await readdir(directory, { recursive: true });
        return names.filter((name) => /[\da-f]{64}$/.test(name)).length;
      }
      const rows = await database.read.query<{ n: number }>('select count(*)::int as n from waymark.artifact_contents');
      return rows[0]?.n ?? 0;
    }

    test('content, record and event are there together', async () => {
      const id = await running();
      const data = randomBytes(9_000);
      const row = await store(id, 'out/data.bin', data, { mediaType: 'application/octet-stream' });
      const sha256 = createHash('sha256').update(data).digest('hex');
      expect(row).toEqual({
        jobId: id,
        name: 'out/data.bin',
        mediaType: 'application/octet-stream',
        bytes: 9_000,
        sha256,
        location: place,
        createdAt: expect.any(String),
      });
      const [event, ...more] = await stored(id);
      expect(more).toEqual([]);
      expect(event).toMatchObject({ seq: 3, attempt: 1, state: 'RUNNING', at: row.createdAt });
      expect(event?.data).toEqual({
        name: 'out/data.bin',
        mediaType: 'application/octet-stream',
        bytes: 9_000,
        sha256,
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      });
      expect(await read(id, 'out/data.bin', sha256)).toBe(data.toString('latin1'));
      expect(await contents()).toBe(1);
    });

    test('the same again is a repetition; another content, or media type, replaces the record', async () => {
      const id = await running();
      const first = await store(id, 'a', 'one');
      expect(await store(id, 'a', 'one')).toEqual(first);
      expect(await stored(id)).toHaveLength(1);
      const second = await store(id, 'a', 'two');
      expect(await stored(id)).toHaveLength(2);
      expect(await read(id, 'a', first.sha256)).toBeNull();
      expect(await read(id, 'a', second.sha256)).toBe('two');
      expect(await store(id, 'a', 'two', { mediaType: 'text/csv' })).toMatchObject({ mediaType: 'text/csv' });
      expect(await stored(id)).toHaveLength(3);
      await engine.maintenance.prune();
      expect(await contents()).toBe(1);
      expect(await read(id, 'a', second.sha256)).toBe('two');
    });

    test('an attempt that no longer owns the job writes neither record nor event', async () => {
      const id = await running();
      await expect(store(id, 'a', 'late', { attempt: 2 })).rejects.toBeInstanceOf(LeaseLost);
      await finish(id);
      await expect(store(id, 'a', 'late')).rejects.toBeInstanceOf(LeaseLost);
      expect(await stored(id)).toEqual([]);
      const rows = await database.read.query('select 1 from waymark.artifacts');
      expect(rows).toEqual([]);
      // What was stored ahead of its record is nobody's, and goes.
      await engine.maintenance.prune();
      expect(await contents()).toBe(0);
    });

    test('a content goes with the last job that needs it', async () => {
      const [one, two] = [await running(), await running()];
      const { sha256 } = await store(one, 'a', 'both');
      await store(two, 'a', 'both');
      expect(await contents()).toBe(1);
      await finish(one);
      // The embedded database's clock counts milliseconds: a job that has just finished may be of this very moment.
      const pruned = (jobId: string) =>
        eventually(async () => {
          await engine.maintenance.prune();
          expect(await read(jobId, 'a', sha256)).toBeNull();
        });
      await pruned(one);
      expect(await read(two, 'a', sha256)).toBe('both');
      await finish(two);
      await pruned(two);
      expect(await contents()).toBe(0);
      expect(await database.read.query('select 1 from waymark.artifacts')).toEqual([]);
    });

    test('one that is young may be waiting for its record, and is left alone', async () => {
      if (place === 'database') return; // Content and record are written in one transaction there.
      const careful = another({ graceMs: 60_000 });
      await expect(store(await running(), 'a', 'x', { attempt: 9 })).rejects.toBeInstanceOf(LeaseLost);
      await careful.maintenance.prune();
      expect(await contents()).toBe(1);
    });

    test('a content that is stored while others remove it is there whenever a record is', async () => {
      const random = seededRandom();
      const others = [another(), another()];
      let before = await running();
      await store(before, 'a', 'wanted');
      for (let round = 0; round < 30; round++) {
        const next = await running();
        await finish(before);
        const pause = async () => {
          for (let n = Math.floor(random() * 6); n > 0; n--) await database.read.query('select 1');
        };
        const [row] = await Promise.all([
          pause().then(() => store(next, 'a', 'wanted')),
          ...others.map((other) => pause().then(() => other.maintenance.prune())),
        ]);
        expect(await read(next, 'a', row.sha256)).toBe('wanted');
        before = next;
      }
    });
  });

  test('a store that comes while its content is being removed waits, and stores it anew', async () => {
    const database = await open();
    const s3 = await startS3();
    const engine = createEngine({
      database,
      channel: createMemoryChannel(),
      options: engineOptions(),
      artifacts: { s3: s3.options, maxBytesInDatabase: 0, graceMs: 0 },
    });
    const id = await insertJob(database.work, { state: 'RUNNING', workerId: await insertWorker(database.work) });
    const store = async (attempt: number) => {
      const gathered = await gather('wanted', 'a', engine.execution.gathering, (step) => step);
      const write = { jobId: id, attempt, name: 'a', mediaType: 'text/plain', ...gathered };
      return engine.execution.storeArtifact(write).finally(gathered.release);
    };
    await expect(store(9)).rejects.toBeInstanceOf(LeaseLost);
    const [removing, goOn] = [deferred(), deferred()];
    s3.before = async (call) => {
      if (!call.startsWith('DELETE')) return;
      removing.resolve();
      await goOn.promise;
    };
    const sweeping = engine.maintenance.prune();
    await removing.promise;
    const storing = store(1);
    await eventually(() => expect(s3.calls.at(-1)).toMatch(/^HEAD/));
    goOn.resolve();
    await sweeping;
    const { sha256 } = await storing;
    const opened = await engine.artifacts.open(await engine.artifacts.link({ jobId: id, name: 'a', sha256 }));
    expect(opened && opened !== 'refused' && (await buffer(opened.stream)).toString()).toBe('wanted');
  });

  test('a content that is not in its place is a fault, and not an artifact that is gone', async () => {
    const database = await open();
    const s3 = await startS3();
    const channel = createMemoryChannel();
    const on = (artifacts: ArtifactPlaces) =>
      createEngine({ database, channel, options: engineOptions(), artifacts }).artifacts;
    const there = { s3: s3.options, maxBytesInDatabase: 0 };
    const id = await insertJob(database.work, { state: 'RUNNING', workerId: await insertWorker(database.work) });
    const engine = createEngine({ database, channel, options: engineOptions(), artifacts: there });
    const gathered = await gather('wanted', 'a', engine.execution.gathering, (step) => step);
    onTestFinished(gathered.release);
    const write = { jobId: id, attempt: 1, name: 'a', mediaType: 'text/plain', ...gathered };
    const link = await on(there).link(await engine.execution.storeArtifact(write));
    await expect(on({}).open(link)).rejects.toThrow('not in its place (s3)');
    s3.fail = () => 503;
    await expect(on(there).open(link)).rejects.toBeInstanceOf(Unavailable);
    s3.fail = null;
    s3.objects.clear();
    await expect(on(there).open(link)).rejects.toThrow('not in its place (s3)');
    await database.work.query('delete from waymark.artifacts');
    expect(await on(there).open(link)).toBeNull();
  });

  test('all processes of a database sign alike', async () => {
    const database = await open();
    const engines = Array.from({ length: 5 }, () =>
      createEngine({ database, channel: createMemoryChannel(), options: engineOptions() }),
    );
    const ref = { jobId: '01900000-0000-7000-8000-000000000000', name: 'a', sha256: 'b'.repeat(64) };
    const links = await Promise.all(engines.map((engine) => engine.artifacts.link(ref)));
    for (const link of links) for (const engine of engines) expect(await engine.artifacts.open(link)).toBeNull();
  });
});
