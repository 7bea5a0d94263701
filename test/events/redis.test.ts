import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type JobChange, shardOf } from '../../src/core/change.ts';
import { newUuid } from '../../src/core/ids.ts';
import type { Logger } from '../../src/core/log.ts';
import { createRedisChannel } from '../../src/events/redis.ts';
import { changeOf, closeChannelsAfterEach, live, recorder, track, until } from './channel-bench.ts';
import { hasRedisServer, type RedisServer, startProxy, startRedis } from './redis-server.ts';

describe.skipIf(!hasRedisServer)('over Redis', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  closeChannelsAfterEach();

  const fast = { pingMs: 200, timeoutMs: 300 };
  const openRedis = (log: Logger = recorder().log, url = redis.url) => track(createRedisChannel({ url, log, ...fast }));
  /** What every process listens to. */
  const OWN = ['waymark:listening', 'waymark:missed'];
  const channels = async () => ((await redis.command('PUBSUB', 'CHANNELS')) as string[]).sort();

  test('messages pass between processes', async () => {
    const [here, there] = await Promise.all([live(openRedis()), live(openRedis())]);
    const got: unknown[] = [];
    await here.onReady((h) => got.push(h)).ready;
    there.publishReady([{ queue: 'q', task: 't' }]);
    await until(() => got.length === 1);
  });

  test('subscribes at the first listener and unsubscribes at the last', async () => {
    const channel = await live(openRedis());
    expect(await channels()).toEqual(OWN);
    const subscriptions = Array.from({ length: 100 }, () => channel.onChanges('t', 3, () => {}));
    await Promise.all(subscriptions.map((s) => s.ready));
    expect(await channels()).toEqual([...OWN, 'waymark:t:changes:3']);
    expect(await redis.command('PUBSUB', 'NUMSUB', 'waymark:t:changes:3')).toEqual(['waymark:t:changes:3', 1]);
    for (const s of subscriptions) s.unsubscribe();
    await until(async () => (await channels()).length === OWN.length);
    for (let i = 0; i < 500; i++) channel.onChanges('t', null, () => {}).unsubscribe();
    await until(async () => (await channels()).length === OWN.length);
  });

  test('randomised subscribing ends with exactly what is wanted', async () => {
    const channel = await live(openRedis());
    const open = new Map<number, { unsubscribe(): void; ready: Promise<void> }>();
    for (let i = 0; i < 2_000; i++) {
      const shard = Math.floor(Math.random() * 16);
      const there = open.get(shard);
      if (there) {
        there.unsubscribe();
        open.delete(shard);
      } else {
        open.set(
          shard,
          channel.onChanges('r', shard, () => {}),
        );
      }
      if (Math.random() < 0.05) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all([...open.values()].map((s) => s.ready));
    const wanted = [...open.keys()].map((s) => `waymark:r:changes:${s}`);
    await until(async () => (await channels()).length === wanted.length + OWN.length);
    expect(await channels()).toEqual([...wanted, ...OWN].sort());
  });

  test('rows are described only where somebody listens, and whoever begins to listen hears the next of them in full', async () => {
    const [here, there] = await Promise.all([live(openRedis()), live(openRedis())]);
    const row = { id: newUuid(), tenant: 'quiet' };
    const described: string[] = [];
    const publish = () =>
      there.publishRows([row], (rows) => {
        described.push(...rows.map((r) => r.id));
        return rows.map((r) => changeOf(r.id, { tenant: r.tenant }));
      });
    // The first is sent in full: nobody has said yet that nobody is there.
    await until(() => {
      const before = described.length;
      publish();
      return described.length === before;
    });
    const got: (readonly JobChange[])[] = [];
    await here.onChanges('quiet', shardOf(row.id), (changes) => got.push(changes)).ready;
    await until(() => {
      publish();
      return got.at(-1)?.length === 1;
    });
    expect(got.at(-1)).toEqual([changeOf(row.id, { tenant: 'quiet' })]);
  });

  test('a listener whom the publisher does not know of is told to look, and speaks up', async () => {
    const [here, there] = await Promise.all([live(openRedis()), live(openRedis())]);
    const row = { id: newUuid(), tenant: 'unknown' };
    const name = `waymark:unknown:changes:${shardOf(row.id)}`;
    const got: number[] = [];
    await here.onChanges('unknown', shardOf(row.id), (changes) => got.push(changes.length)).ready;
    await redis.command('PUBLISH', name, '[]');
    await until(() => got.length === 1);
    there.publishRows([row], (rows) => rows.map((r) => changeOf(r.id, { tenant: r.tenant })));
    await until(() => got.length === 2);
    expect(got).toEqual([0, 1]);
  });

  test('foreign garbage is ignored, and logged without a flood', async () => {
    const { log, lines } = recorder();
    const channel = await live(openRedis(log));
    const job = '00000000-0000-7000-8000-000000000003';
    const got: JobChange[] = [];
    await channel.onChanges('default', 3, (c) => got.push(...c)).ready;
    const foreign = [
      ...['', 'garbage', '{"jobId":1}', 'null', '[null]', '[{}]', '[[]]', '"x"', '{'],
      JSON.stringify([changeOf(job, { tenant: 'other' })]),
      JSON.stringify([changeOf('00000000-0000-7000-8000-000000000004')]),
      JSON.stringify([changeOf(job, { version: -1 })]),
      JSON.stringify([changeOf(job, { state: 'NOPE' as never })]),
      JSON.stringify([{ ...changeOf(job), events: [{ seq: 'a' }] }]),
      JSON.stringify([changeOf(job), 17]),
    ];
    for (let i = 0; i < 20; i++)
      for (const text of foreign) await redis.command('PUBLISH', 'waymark:default:changes:3', text);
    channel.publishChanges([changeOf(job)]);
    await until(() => got.length > 0);
    expect(got).toEqual([changeOf(job)]);
    expect(lines.filter((l) => l.level === 'warn').length).toBeLessThanOrEqual(2);
  });

  test('CLIENT KILL TYPE pubsub: goes down, comes back, hears again', async () => {
    const channel = await live(openRedis());
    const states: string[] = [];
    channel.onState((s) => states.push(s));
    let calls = 0;
    await channel.onReady(() => calls++).ready;
    await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await until(() => states.length >= 2);
    expect(states).toEqual(['down', 'live']);
    channel.publishReady([{ queue: 'q', task: 't' }]);
    await until(() => calls === 1);
  });

  test('a lost publisher connection tells readers elsewhere to look', async () => {
    const [writer, reader] = await Promise.all([live(openRedis()), live(openRedis())]);
    const states: string[] = [];
    reader.onState((s) => states.push(s));
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
    writer.publishReady([{ queue: 'q', task: 't' }]);
    await new Promise((resolve) => setTimeout(resolve, 5));
    writer.publishReady([{ queue: 'q', task: 't' }]);
    await until(() => states.includes('live'));
    expect(reader.state).toBe('live');
  });

  test('a silent link is noticed on both connections and replaced', async () => {
    const proxy = await startProxy(redis.port);
    try {
      const channel = await live(openRedis(recorder().log, `redis://127.0.0.1:${proxy.port}`));
      const states: string[] = [];
      channel.onState((s) => states.push(s));
      let calls = 0;
      await channel.onReady(() => calls++).ready;
      proxy.mode = 'blackhole';
      await until(() => states.includes('down'));
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      proxy.mode = 'pass';
      await until(() => states.at(-1) === 'live');
      await until(() => {
        channel.publishReady([{ queue: 'q', task: 't' }]);
        return calls > 0;
      });
    } finally {
      await proxy.close();
    }
  }, 20_000);

  test('subscribing while the link comes and goes never leaves a deaf listener', async () => {
    const proxy = await startProxy(redis.port);
    try {
      const channel = await live(openRedis(recorder().log, `redis://127.0.0.1:${proxy.port}`));
      const kept: { tenant: string; shard: number; calls: number }[] = [];
      for (let i = 0; i < 60; i++) {
        const mine = { tenant: `t${i}`, shard: i % 16, calls: 0 };
        const subscription = channel.onChanges(mine.tenant, mine.shard, () => mine.calls++);
        if (i % 3 === 0) subscription.unsubscribe();
        else kept.push(mine);
        if (i % 10 === 5) proxy.cut();
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 30));
      }
      await live(channel);
      await until(async () => (await channels()).length === kept.length + OWN.length);
      // The publishing connection was cut too and may be back later than the other.
      await until(() => {
        for (const { shard, tenant, calls } of kept) {
          const jobId = `00000000-0000-7000-8000-00000000000${shard.toString(16)}`;
          if (calls === 0) channel.publishChanges([changeOf(jobId, { tenant })]);
        }
        return kept.every((k) => k.calls > 0);
      });
    } finally {
      await proxy.close();
    }
  });

  test('Redis absent at the start: nothing waits, nothing throws; it is live once Redis is there', async () => {
    const server = await startRedis();
    await server.stop();
    const { log, lines } = recorder();
    const channel = openRedis(log, server.url);
    try {
      expect(channel.state).toBe('down');
      let calls = 0;
      const subscription = channel.onReady(() => calls++);
      await subscription.ready;
      for (let i = 0; i < 10_000; i++) channel.publishReady([{ queue: 'q', task: 't' }]);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(channel.state).toBe('down');
      expect(lines.length).toBe(1);
      await server.start();
      await live(channel);
      expect(calls).toBe(0);
      await until(() => {
        channel.publishReady([{ queue: 'q', task: 't' }]);
        return calls > 0;
      });
      expect(lines.filter((l) => l.level === 'warn').length).toBe(1);
    } finally {
      await server.stop();
    }
  });

  test('a restart after many failed reconnects restores every subscription, with few log lines', async () => {
    const server = await startRedis();
    const { log, lines } = recorder();
    const channel = await live(openRedis(log, server.url));
    try {
      const calls = Array.from({ length: 20 }, () => 0);
      const tenants = calls.map((_, i) => `tenant-${i}`);
      await Promise.all(
        tenants.map((tenant, i) => {
          const count = () => {
            calls[i] = (calls[i] ?? 0) + 1;
          };
          return channel.onChanges(tenant, null, count).ready;
        }),
      );
      const states: string[] = [];
      channel.onState((s) => states.push(s));
      await server.stop();
      await until(() => channel.state === 'down');
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      for (let i = 0; i < 5_000; i++) channel.publishChanges([changeOf(newUuid(), { tenant: 'tenant-0' })]);
      await server.start();
      const back = performance.now();
      await live(channel);
      expect(performance.now() - back).toBeLessThan(3_000);
      // A notice of what was dropped may follow the first `live`.
      expect(states.slice(0, 2)).toEqual(['down', 'live']);
      expect(calls[0]).toBe(0);
      await until(() => {
        for (const tenant of tenants) channel.publishChanges([changeOf(newUuid(), { tenant })]);
        return calls.every((n) => n > 0);
      });
      expect(lines.length).toBeLessThanOrEqual(4);
    } finally {
      await server.stop();
    }
  }, 20_000);

  test('a server that refuses every connection neither floods the log nor spins', async () => {
    const proxy = await startProxy(1);
    const { log, lines } = recorder();
    try {
      const channel = openRedis(log, `redis://127.0.0.1:${proxy.port}`);
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      expect(channel.state).toBe('down');
      expect(lines.length).toBe(1);
      await channel.close();
    } finally {
      await proxy.close();
    }
  });

  test('close ends both connections, also while Redis is away or silent', async () => {
    const names = async () => String(await redis.command('CLIENT', 'LIST')).match(/name=waymark:\w+/g) ?? [];
    const before = (await names()).length;
    const channel = await live(openRedis());
    await until(async () => (await names()).length === before + 2);
    await channel.close();
    await until(async () => (await names()).length === before);

    const proxy = await startProxy(redis.port);
    const silent = await live(openRedis(recorder().log, `redis://127.0.0.1:${proxy.port}`));
    proxy.mode = 'blackhole';
    const start = performance.now();
    await silent.close();
    expect(performance.now() - start).toBeLessThan(1_500);
    await proxy.close();
  });
});
