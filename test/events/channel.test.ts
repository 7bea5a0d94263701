import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JobChange, shardOf } from '../../src/core/change.ts';
import { newUuid } from '../../src/core/ids.ts';
import { silentLogger } from '../../src/core/log.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import { createRedisChannel } from '../../src/events/redis.ts';
import { changeOf, closeChannelsAfterEach, live, track, until } from './channel-bench.ts';
import { hasRedisServer, type RedisServer, startRedis } from './redis-server.ts';

let redis: RedisServer;

beforeAll(async () => {
  if (hasRedisServer) redis = await startRedis();
});
afterAll(() => redis?.stop());
closeChannelsAfterEach();

const kinds = {
  memory: () => createMemoryChannel(),
  redis: () => createRedisChannel({ url: redis.url, log: silentLogger, pingMs: 200, timeoutMs: 300 }),
};

describe.each(hasRedisServer ? (['memory', 'redis'] as const) : (['memory'] as const))('the %s channel', (kind) => {
  const open = () => live(track(kinds[kind]()));

  test('delivers changes to listeners of the shard and of the whole tenant, and to no others', async () => {
    const channel = await open();
    const job = newUuid();
    const got: Record<string, JobChange[]> = { shard: [], all: [], otherShard: [], otherTenant: [] };
    const subscriptions = [
      channel.onChanges('default', shardOf(job), (c) => got.shard?.push(...c)),
      channel.onChanges('default', null, (c) => got.all?.push(...c)),
      channel.onChanges('default', (shardOf(job) + 1) % 16, (c) => got.otherShard?.push(...c)),
      channel.onChanges('other', null, (c) => got.otherTenant?.push(...c)),
    ];
    await Promise.all(subscriptions.map((s) => s.ready));
    const change = changeOf(job, {
      events: [
        {
          ...{ jobId: job, seq: 2, at: '2026-01-01 00:00:00.123456+00', type: 'AttemptStarted', run: 1, attempt: 1 },
          ...{ actor: null, state: 'RUNNING', data: { workerId: 'w', resumedFrom: null } },
        },
      ],
    });
    channel.publishChanges([change]);
    await until(() => got.all?.length === 1);
    expect(got).toEqual({ shard: [change], all: [change], otherShard: [], otherTenant: [] });
  });

  test('keeps the order of one job, and sends one message per shard', async () => {
    const channel = await open();
    const jobs = Array.from({ length: 40 }, () => newUuid());
    const messages: (readonly JobChange[])[] = [];
    await channel.onChanges('default', null, (changes) => messages.push(changes)).ready;
    for (let version = 2; version < 12; version++) {
      channel.publishChanges(jobs.map((job) => changeOf(job, { version })));
    }
    await until(() => messages.flat().length === 400);
    expect(messages.length).toBe(10 * new Set(jobs.map(shardOf)).size);
    for (const job of jobs) {
      const versions = messages.flat().filter((c) => c.jobId === job);
      expect(versions.map((c) => c.version)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }
  });

  test('rows reach those who listen as the changes that they are described by', async () => {
    const channel = await open();
    const rows = Array.from({ length: 20 }, () => ({ id: newUuid(), tenant: 'default' }));
    const got: JobChange[] = [];
    await channel.onChanges('default', null, (changes) => got.push(...changes)).ready;
    channel.publishRows(rows, (some) => some.map((row) => changeOf(row.id)));
    await until(() => got.length === 20);
    expect(got.map((c) => c.jobId).sort()).toEqual(rows.map((row) => row.id).sort());
  });

  test('delivers hints and nudges', async () => {
    const channel = await open();
    const hints: unknown[] = [];
    let nudges = 0;
    await Promise.all([
      channel.onReady((h) => hints.push(...h)).ready,
      channel.onNudge('w1', () => nudges++).ready,
      channel.onNudge('w2', () => expect.unreachable()).ready,
    ]);
    channel.publishReady([{ queue: 'q', task: 't' }]);
    channel.publishReady([]);
    channel.publishNudge('w1');
    await until(() => nudges === 1 && hints.length === 1);
    expect(hints).toEqual([{ queue: 'q', task: 't' }]);
  });

  test('never calls a listener inside the publisher', async () => {
    const channel = await open();
    let inside = false;
    const seen: boolean[] = [];
    await channel.onReady(() => seen.push(inside)).ready;
    inside = true;
    channel.publishReady([{ queue: 'q', task: 't' }]);
    inside = false;
    await until(() => seen.length === 1);
    expect(seen).toEqual([false]);
  });

  test('a listener that throws does not hurt the others', async () => {
    const channel = await open();
    let calls = 0;
    await channel.onReady(() => {
      throw new Error('a broken listener');
    }).ready;
    await channel.onReady(() => calls++).ready;
    channel.publishReady([{ queue: 'q', task: 't' }]);
    channel.publishReady([{ queue: 'q', task: 't' }]);
    await until(() => calls === 2);
  });

  test('stops at once when unsubscribed, also from within a listener, and twice', async () => {
    const channel = await open();
    const got: string[] = [];
    const first = channel.onReady(() => {
      got.push('first');
      first.unsubscribe();
      second.unsubscribe();
    });
    const second = channel.onReady(() => got.push('second'));
    const third = channel.onReady(() => got.push('third'));
    await Promise.all([first.ready, second.ready, third.ready]);
    channel.publishReady([{ queue: 'q', task: 't' }]);
    channel.publishReady([{ queue: 'q', task: 't' }]);
    await until(() => got.filter((g) => g === 'third').length === 2);
    expect(got).toEqual(['first', 'third', 'third']);
    first.unsubscribe();
    channel.publishReady([{ queue: 'q', task: 't' }]);
    await until(() => got.length === 4);
  });

  test('is correct under subscribing and unsubscribing within one tick', async () => {
    const channel = await open();
    let calls = 0;
    for (let i = 0; i < 50; i++) channel.onReady(() => expect.unreachable()).unsubscribe();
    const kept = channel.onReady(() => calls++);
    for (let i = 0; i < 50; i++) channel.onReady(() => expect.unreachable()).unsubscribe();
    await kept.ready;
    channel.publishReady([{ queue: 'q', task: 't' }]);
    await until(() => calls === 1);
    kept.unsubscribe();
    const again = channel.onReady(() => calls++);
    await again.ready;
    channel.publishReady([{ queue: 'q', task: 't' }]);
    await until(() => calls === 2);
  });

  test('after close nothing is delivered, nothing throws, and a second close is nothing', async () => {
    const channel = await open();
    await channel.onReady(() => expect.unreachable()).ready;
    await channel.close();
    channel.publishReady([{ queue: 'q', task: 't' }]);
    channel.publishChanges([changeOf(newUuid())]);
    const late = channel.onReady(() => expect.unreachable());
    await late.ready;
    late.unsubscribe();
    await channel.close();
  });
});
