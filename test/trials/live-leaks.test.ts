import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { publicId } from '../../src/core/ids.ts';
import { silentLogger } from '../../src/core/log.ts';
import { createRedisChannel } from '../../src/events/redis.ts';
import { hasRedisServer, startRedis } from '../events/redis-server.ts';
import { handWorker } from '../server/hand-worker.ts';
import { startService } from '../server/service.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { me } from '../support/factory.ts';

const PROGRESS = 'subscription ($id: ID!) { jobProgress(id: $id) { state } }';
const SUBSCRIPTIONS = 2_000;
const AT_ONCE = 50;
const HEAP_GROWTH = 1.1;

/** The ways in which a client leaves. Their clients are bare ones, of which nothing is kept. */
const LEAVES: readonly ((url: string, id: string) => Promise<void>)[] = [
  async (url, id) => {
    const socket = await greeted(url);
    await answered(socket, id);
    await gone(socket, () => socket.close());
  },
  async (url, id) => {
    const socket = await greeted(url);
    await answered(socket, id);
    await gone(socket, () => socket.terminate());
  },
  async (url, id) => {
    const abort = new AbortController();
    const { body } = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ query: PROGRESS, variables: { id } }),
      signal: abort.signal,
    });
    await body?.getReader().read();
    abort.abort();
  },
  // Before the first value.
  async (url, id) => {
    const socket = await greeted(url);
    subscribe(socket, id);
    await gone(socket, () => socket.terminate());
  },
  // In one tick.
  async (url, id) => {
    const socket = await greeted(url);
    await gone(socket, () => {
      subscribe(socket, id);
      socket.send(JSON.stringify({ id: '1', type: 'complete' }));
      socket.close();
    });
  },
];

async function greeted(url: string): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  const acknowledged = once(socket, 'message');
  socket.send(JSON.stringify({ type: 'connection_init' }));
  await acknowledged;
  return socket;
}

const subscribe = (socket: WebSocket, id: string) =>
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: PROGRESS, variables: { id } } }));

async function answered(socket: WebSocket, id: string): Promise<void> {
  const answer = once(socket, 'message');
  subscribe(socket, id);
  expect(String((await answer)[0])).toContain('"type":"next"');
}

async function gone(socket: WebSocket, leave: () => void): Promise<void> {
  const closed = once(socket, 'close');
  leave();
  await closed;
}

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

describePostgres('departed clients', (store) => {
  test.skipIf(!hasRedisServer)(
    `B79: ${SUBSCRIPTIONS} subscriptions that were left in five ways leave no subscription, stream or memory behind`,
    async ({ onTestFinished }) => {
      const warnings: string[] = [];
      const warned = (warning: Error) => void warnings.push(warning.name);
      process.on('warning', warned);
      onTestFinished(() => void process.off('warning', warned));
      const redis = await startRedis();
      onTestFinished(() => redis.stop());
      const service = await startService(store.open, {
        channel: createRedisChannel({ url: redis.url, log: silentLogger }),
      });
      await handWorker(service);
      const { jobId } = await service.engine.jobs.submit(me, { task: 'echo' });
      const id = publicId('Job', jobId);
      const channels = async () => ((await redis.command('PUBSUB', 'CHANNELS')) as string[]).toSorted();
      const before = await channels();

      const leave = async (count: number) => {
        for (let n = 0; n < count; n += AT_ONCE) {
          await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => LEAVES[i % LEAVES.length]?.(service.url, id)));
        }
        await eventually(
          async () => {
            expect(service.live.stats()).toMatchObject({ streams: 0, topics: 0, subscriptions: 0 });
            expect(service.server.stats().eventStreams).toBe(0);
            expect(await channels()).toEqual(before);
          },
          { timeoutMs: 5_000 },
        );
        gc();
        return process.memoryUsage().heapUsed;
      };
      // Caches are filled by then.
      const heap = await leave(SUBSCRIPTIONS / 4);
      expect(await leave(SUBSCRIPTIONS)).toBeLessThan(heap * HEAP_GROWTH);
      expect(warnings).not.toContain('MaxListenersExceededWarning');
    },
    120_000,
  );
});
