import { beforeAll, describe, expect, test } from 'vitest';
import { newUuid } from '../../src/core/ids.ts';
import { databases } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';
import { SocketClient } from './clients.ts';
import { type Service, startService } from './service.ts';

const WATCH = `subscription ($minInterval: Duration = "50ms") {
  queuesChanged(minInterval: $minInterval) { name paused counts { state count } } }`;

interface QueueView {
  name: string;
  paused: boolean;
  counts: { state: string; count: number }[];
}

describe.each(databases())('watching queues over a WebSocket on $name', ({ open }) => {
  let service: Service;

  beforeAll(async () => {
    service = await startService(open);
    await service.worker([]);
  });

  async function watch(minInterval?: string) {
    const client = await new SocketClient(service.url).start();
    client.subscribe('1', WATCH, minInterval === undefined ? {} : { minInterval });
    return async (): Promise<QueueView[]> => (await client.next((m) => m.type === 'next')).payload.data?.queuesChanged;
  }
  const queued = (queue: QueueView | undefined) => queue?.counts.find((c) => c.state === 'QUEUED')?.count ?? 0;

  test('all queues at once, then whenever a count or a pause differs', async () => {
    const name = `queue-${newUuid()}`;
    await service.engine.jobs.submit(me, { task: 'echo', queue: name });
    const next = await watch();
    const find = (queues: QueueView[]) => queues.find((q) => q.name === name);
    const until = (fits: (queue: QueueView | undefined) => boolean) =>
      eventually(async () => {
        const queue = find(await next());
        if (!fits(queue)) throw new Error(JSON.stringify(queue));
      });
    expect(queued(find(await next()))).toBe(1);
    await service.engine.jobs.submit(me, { task: 'echo', queue: name });
    await until((q) => queued(q) === 2);
    await service.engine.queues.pause(me, name, { reason: 'test' });
    await until((q) => q?.paused === true);
  });

  test('many who watch share the reads', async () => {
    const streams = await Promise.all(Array.from({ length: 20 }, () => watch()));
    await Promise.all(streams.map((next) => next()));
    let reads = 0;
    const { query } = service.database.read;
    service.database.read.query = ((text: string, params: never) => {
      if (text.includes('from waymark.queues q order by')) reads++;
      return query.call(service.database.read, text, params);
    }) as typeof query;
    try {
      await service.engine.jobs.submit(me, { task: 'echo' });
      await Promise.all(streams.map((next) => next()));
      expect(reads).toBeGreaterThan(0);
      expect(reads).toBeLessThan(6);
    } finally {
      service.database.read.query = query;
    }
  });

  test('an interval that is too short is refused', async () => {
    const client = await new SocketClient(service.url).start();
    client.subscribe('1', WATCH, { minInterval: '1ms' });
    const { payload } = await client.next((m) => m.type === 'next');
    expect(payload.errors[0].extensions.code).toBe('BAD_USER_INPUT');
  });
});
