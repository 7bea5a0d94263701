import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { hasRedisServer, startRedis } from '../events/redis-server.ts';
import { SocketClient } from '../server/clients.ts';
import { describePostgres } from '../support/database.ts';
import { eventually, within } from '../support/eventually.ts';
import { SLACK, trial } from './bench.ts';

const EVENTS = 'subscription ($id: ID!) { jobEvents(id: $id) { seq type: __typename } }';
const OUTAGE_MS = Number(process.env.WAYMARK_TRIAL_OUTAGE ?? 8_000);
const RIGHT_WITHIN_MS = 5_000;
const IDLE_LIMIT_MS = 15_000;
const hasCurl = spawnSync('curl', ['--version']).status === 0;

afterAll(cleanUp);

/** A proxy that ends a connection on which nothing has moved for so long. */
async function impatientProxy(target: number, idleMs: number): Promise<{ port: number; close(): void; cut: number }> {
  const proxy = { port: 0, cut: 0, close: () => void server.close() };
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
      one.pipe(other);
    }
    client.setTimeout(idleMs, () => {
      proxy.cut++;
      client.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.port = (server.address() as AddressInfo).port;
  return proxy;
}

describePostgres('the live view of a service', () => {
  test.skipIf(!hasRedisServer).concurrent(
    'B75: after Redis was away for long every subscriber is right within 5 s of its return, without doing anything',
    async (ctx) => {
      const redis = await startRedis();
      ctx.onTestFinished(() => redis.stop());
      const t = await trial(ctx, { REDIS_URL: redis.url });
      await t.worker();
      const { file: ledger } = await t.ledger();
      // Some end while it is away, some later.
      const ids: string[] = [];
      for (let i = 0; i < 20; i++) {
        ids.push((await t.client.submit('steps', { n: 10 + 2 * i, ms: OUTAGE_MS / 25, ledger })).id);
      }
      const seen = ids.map(() => 0);
      const ends = ids.map(async (id, i) => {
        let isTerminal = false;
        for await (const job of t.client.job(id).progress()) [seen[i], isTerminal] = [job.version, job.isTerminal];
        return isTerminal;
      });
      await eventually(() => expect(seen.every((version) => version > 2)).toBe(true));
      await redis.stop();
      await pause(OUTAGE_MS);
      await redis.start();
      const now = new Map(
        (await t.sql<{ id: string; version: number }[]>`select id, version from waymark.job_states`).map((row) => [
          row.id,
          row.version,
        ]),
      );
      await eventually(
        () => ids.forEach((id, i) => void expect(seen[i]).toBeGreaterThanOrEqual(now.get(t.uuid(id)) ?? Infinity)),
        { timeoutMs: RIGHT_WITHIN_MS + SLACK },
      );
      // Told again, and not only asking.
      await eventually(async () => expect(await redis.command('PUBSUB', 'CHANNELS')).not.toEqual([]), {
        timeoutMs: RIGHT_WITHIN_MS + SLACK,
      });
      expect(await within(4 * OUTAGE_MS, Promise.all(ends), 'the end of all')).toEqual(ids.map(() => true));
    },
    120_000,
  );

  // Its clients are those of tests that run alone.
  test.skipIf(!hasRedisServer)(
    'B85: what breaks in one stream ends that one with a typed error; the process and the others go on',
    async (ctx) => {
      const redis = await startRedis();
      ctx.onTestFinished(() => redis.stop());
      const t = await trial(ctx, { REDIS_URL: redis.url });
      await t.worker();
      const { link, env } = await t.wayToPostgres();
      const api = await t.api(env);
      const { file: ledger } = await t.ledger();
      const { id } = await t.client.submit('steps', { n: 20, ms: 500, ledger });
      const socket = await new SocketClient(api.url).start();
      ctx.onTestFinished(() => socket.socket.terminate());
      socket.subscribe('healthy', EVENTS, { id });
      await socket.next((m) => m.id === 'healthy');
      const codeOf = async (name: string, query: string, variables: object) => {
        socket.subscribe(name, query, variables as Record<string, unknown>);
        const [last, ...more] = (await socket.all(name)).toReversed();
        const errors = last?.type === 'error' ? last.payload : more.flatMap((m) => m.payload?.errors ?? []);
        return errors[0]?.extensions?.code;
      };

      expect(await codeOf('bad id', EVENTS, { id: 'no id' })).toBe('BAD_USER_INPUT');
      expect(await codeOf('unknown', EVENTS, { id: 'job_00000000000000000000000000' })).toBe('NOT_FOUND');
      expect(await codeOf('ahead', `subscription { jobEvents(id: "${id}", after: 9999) { seq } }`, {})).toBe(
        'CURSOR_INVALID',
      );
      link.set({ kind: 'cut' });
      expect(await codeOf('no store', EVENTS, { id })).toBe('UNAVAILABLE');
      link.set({ kind: 'pass' });
      for (const channel of (await redis.command('PUBSUB', 'CHANNELS')) as string[]) {
        for (const garbage of ['{', 'null', '[]', '{"v":"x"}', '\u0000'])
          await redis.command('PUBLISH', channel, garbage);
      }
      await redis.stop();
      await redis.start();
      const told = await within(60_000, restOf(socket, 'healthy'), 'the end of the healthy stream');
      const log = await t.events(id);
      // The first one was taken at the beginning.
      expect(told).toEqual(log.map((type, i) => ({ seq: i + 1, type })).slice(1));
      expect((await fetch(`${api.url}/healthz`)).status).toBe(200);
      expect(api.stderr()).not.toMatch(/"level":(60|"fatal")|Unhandled|uncaught/i);
    },
    120_000,
  );

  test.skipIf(!hasCurl).concurrent(
    'B87: an idle event stream outlives a proxy that cuts idle connections, and curl sees its proper end',
    async (ctx) => {
      const t = await trial(ctx);
      await t.worker();
      const proxy = await impatientProxy(Number(new URL(t.first.url).port), IDLE_LIMIT_MS);
      ctx.onTestFinished(() => proxy.close());
      const { id } = await t.client.submit('nap', { ms: IDLE_LIMIT_MS + 5_000 });
      const body = JSON.stringify({ query: EVENTS, variables: { id } });
      const curl = spawn('curl', [
        ...['-N', '-sS', '--compressed', '--max-time', '60', '-H', 'accept: text/event-stream'],
        ...['-H', 'content-type: application/json', '-d', body, `http://127.0.0.1:${proxy.port}/graphql`],
      ]);
      ctx.onTestFinished(() => void curl.kill('SIGKILL'));
      let text = '';
      curl.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      const ended = once(curl, 'close');
      // At once, and not when a buffer is full.
      await eventually(() => expect(text).toContain('AttemptStarted'));
      expect(await ended).toEqual([0, null]);
      expect(proxy.cut).toBe(0);
      const blocks = text.split('\n\n').map((block) => block.split('\n').filter((line) => !/^:?$/.test(line)));
      const told = blocks
        .filter((lines) => lines[0] === 'event: next')
        .map(([, data = '']) => JSON.parse(data.slice(6)));
      expect(told.map(({ data }) => data.jobEvents.type)).toEqual(await t.events(id));
      expect(text.trimEnd()).toMatch(/event: complete(\ndata:.*)?$/);
    },
    90_000,
  );
});

async function restOf(socket: SocketClient, name: string) {
  const told: { seq: number; type: string }[] = [];
  for (;;) {
    const message = await socket.next((m) => m.id === name);
    if (message.type !== 'next') return told;
    told.push(message.payload.data.jobEvents);
  }
}
