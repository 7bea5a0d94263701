import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../src/core/log.ts';
import type { ProgressState } from '../../src/core/progress.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createLiveHub, type LiveHub } from '../../src/engine/live/index.ts';
import type { LiveChannel } from '../../src/events/channel.ts';
import { createRedisChannel } from '../../src/events/redis.ts';
import { hasRedisServer, type RedisServer, startRedis } from '../events/redis-server.ts';
import { databases, type TestDatabase } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { engineOptions, insertWorker, me, taskNamed } from '../support/factory.ts';

const gauge = (current: number): ProgressState => ({
  ...{ stage: null, stageIndex: null, stageCount: null, nextStage: null, current, total: 20, unit: null },
  ...{ message: null, data: null, ratePerSecond: null, updatedAt: new Date().toISOString() },
});
const turn = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

// One process that submits and runs, another that watches; between them a Redis that the trial may hurt.
describe.skipIf(!hasRedisServer).each(databases().slice(-1))('live streams between processes, on $name', ({ open }) => {
  let database: TestDatabase;
  let redis: RedisServer;
  let writing: LiveChannel;
  let watching: LiveChannel;
  let engine: Engine;
  let hub: LiveHub;
  let workerId: string;

  beforeAll(async () => {
    database = await open();
    redis = await startRedis();
    const options = { url: redis.url, log: silentLogger, pingMs: 200, timeoutMs: 500 };
    writing = createRedisChannel(options);
    watching = createRedisChannel(options);
    engine = createEngine({ database, channel: writing, options: engineOptions({ leaseMs: 600_000 }) });
    hub = createLiveHub({ db: database.read, channel: watching, log: silentLogger, pollMs: 100, safetyMs: 2_000 });
    const task = taskNamed('echo');
    await engine.execution.registerWorker({
      ...{ id: '00000000-0000-7000-8000-000000000001', host: 'test', pid: 1, queues: null, tasks: [task] },
      ...{ slots: 100, leaseMs: 600_000 },
    });
    workerId = await insertWorker(database.work, { tasks: ['echo'] });
    await eventually(() => expect([writing.state, watching.state]).toEqual(['live', 'live']));
  });
  afterAll(async () => {
    await hub.close();
    await Promise.all([writing.close(), watching.close()]);
    await redis.stop();
  });

  /** Runs 20 watched jobs, each with 20 checkpoints and gauges, while `trouble` happens; checks what was seen. */
  async function trial(trouble: () => Promise<void>, ofFacts = hub): Promise<void> {
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push((await engine.jobs.submit(me, { task: 'echo' })).jobId);
    const seen = ids.map(async (id) => {
      const seqs: number[] = [];
      const gauges: number[] = [];
      const facts = (async () => {
        for await (const event of ofFacts.jobEvents(me, id)) seqs.push(event.seq);
      })();
      let last: string | undefined;
      for await (const row of hub.jobProgress(me, id)) {
        gauges.push(row.version);
        last = row.state;
      }
      await facts;
      return { seqs, gauges, last };
    });
    const claimed = await engine.execution.claim(workerId, { queues: null, tasks: ['echo'], limit: 20 });
    expect(claimed).toHaveLength(20);
    const work = Promise.all(
      claimed.map(async ({ id, attempt, epoch }) => {
        for (let i = 1; i <= 20; i++) {
          await engine.execution.flushProgress([{ jobId: id, attempt, progress: gauge(i) }]);
          await engine.execution.saveCheckpoint({ jobId: id, attempt, epoch, key: `k${i}`, kind: 'STEP', data: '1' });
          await turn(Math.random() * 100);
        }
        await engine.execution.settle({ jobId: id, attempt, outcome: 'SUCCEEDED', result: '1', resultDigest: 'd' });
      }),
    );
    await Promise.all([work, trouble()]);
    for (const { seqs, gauges, last } of await within(5_000, Promise.all(seen))) {
      expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, i) => i + 1));
      expect(seqs).toHaveLength(23);
      expect(gauges).toEqual([...new Set(gauges)].sort((a, b) => a - b));
      expect(last).toBe('COMPLETED');
    }
    for (const each of [hub, ofFacts]) {
      expect(each.stats()).toMatchObject({ streams: 0, topics: 0, subscriptions: 0 });
    }
  }

  test('nothing is missed when all is well, and little is read', async () => {
    const before = hub.stats().reads.rows;
    // Whoever follows rows as well may read one before its message is here, and then reads its facts, too.
    const ofFacts = createLiveHub({ db: database.read, channel: watching, log: silentLogger, safetyMs: 600_000 });
    await trial(async () => {}, ofFacts);
    // One look each at the start; the 23 facts of each of the 20 jobs came by the channel.
    expect(ofFacts.stats().reads.events).toBeLessThanOrEqual(40);
    expect(ofFacts.stats().reads.rows).toBeLessThanOrEqual(40);
    expect(hub.stats().reads.rows - before).toBeLessThan(20 * 42);
    await ofFacts.close();
  });

  test('nothing is missed when connections are killed', async () => {
    await trial(async () => {
      for (let i = 0; i < 8; i++) {
        await redis.command('CLIENT', 'KILL', 'TYPE', i % 2 ? 'pubsub' : 'normal');
        await turn(100);
      }
    });
  });

  test('nothing is missed when Redis goes away and comes back, or does not come back in time', async () => {
    await trial(async () => {
      await turn(200);
      await redis.stop();
      await turn(800);
      await redis.start();
    });
    await eventually(() => expect(watching.state).toBe('live'));
    await trial(() => redis.stop());
    await redis.start();
    await eventually(() => expect([writing.state, watching.state]).toEqual(['live', 'live']));
  });

  test('a list is told of every change, or to read again', async () => {
    const states = new Map<string, string>();
    const list = hub.jobsChanged(me, { minIntervalMs: 20, filter: { change: (c) => c.task === 'echo' } });
    const showing = (async () => {
      for await (const { jobs, reset } of list) {
        for (const job of jobs) states.set(job.id, job.state);
        if (!reset) continue;
        states.clear();
        for (const row of await database.read.query<{ id: string; state: string }>(
          'select id, state from waymark.job_states',
        )) {
          states.set(row.id, row.state);
        }
      }
    })();
    await trial(async () => {
      for (let i = 0; i < 5; i++) {
        await redis.command('CLIENT', 'KILL', 'TYPE', i % 2 ? 'pubsub' : 'normal');
        await turn(150);
      }
    }).catch((error) => {
      // The list is still open when the trial looks at what is left.
      if (!String(error).includes('streams')) throw error;
    });
    await eventually(async () => {
      const rows = await database.read.query<{ id: string; state: string }>('select id, state from waymark.job_states');
      expect(new Map([...states].sort())).toEqual(new Map(rows.map((r) => [r.id, r.state] as [string, string]).sort()));
    });
    await list.return?.();
    await showing;
  });
});
