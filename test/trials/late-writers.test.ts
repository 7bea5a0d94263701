import { afterAll, expect, test } from 'vitest';
import { Link } from '../chaos/cluster/link.ts';
import { cleanUp } from '../cli/program.ts';
import { hasRedisServer, startRedis } from '../events/redis-server.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { trial } from './bench.ts';

const ROUNDS = 20;

afterAll(cleanUp);

describePostgres('what comes late', () => {
  test.concurrent('from a handler that has returned changes nothing, not even after its job is gone (B32)', async (ctx) => {
    const t = await trial(ctx, { WAYMARK_RETAIN_COMPLETED: '1s', WAYMARK_RETAIN_KEYS: '2s' });
    await t.worker();
    const { file, lines } = await t.ledger();
    const input = { ms: 8_000, ledger: file };
    const { id } = await t.client.submit('ghost', input, { idempotencyKey: 'ghost' });
    expect(await t.ends(id)).toBe('COMPLETED');
    await eventually(async () => expect(await t.state(id)).toBe('none'), { timeoutMs: 20_000 });
    const haunted = lines().length;
    expect(haunted).toBeGreaterThan(5);
    const again = await t.client.submit('ghost', { ...input, ms: 0 }, { idempotencyKey: 'ghost' });
    expect([again.deduplicated, again.id === id]).toEqual([false, false]);
    await eventually(() => expect(lines().length).toBeGreaterThan(haunted + 5));
    expect(lines().every(([, , what]) => what === 'refused:AttemptAborted')).toBe(true);
    for (const table of ['jobs', 'job_states', 'events', 'attempts', 'checkpoints', 'idempotency_keys']) {
      const column = table === 'jobs' || table === 'job_states' ? 'id' : 'job_id';
      const rows = await t.sql.unsafe(`select 1 from waymark.${table} where ${column} = $1`, [t.uuid(id)]);
      expect([table, rows.length]).toEqual([table, 0]);
    }
    expect(await t.ends(again.id)).toBe('COMPLETED');
  }, 60_000);

  test.skipIf(!hasRedisServer).concurrent(
    'over a slow Redis is put in order: the end is last, and the last gauge is the stored one (B33)',
    async (ctx) => {
      const random = seededRandom();
      const redis = await startRedis();
      const link = await Link.open('redis', redis.port);
      ctx.onTestFinished(async () => {
        await link.close();
        await redis.stop();
      });
      const t = await trial(ctx, { REDIS_URL: redis.url });
      const [other] = await Promise.all([t.api({ REDIS_URL: `redis://127.0.0.1:${link.port}` }), t.worker()]);
      const watcher = t.clientOf(other);
      for (let round = 0; round < ROUNDS; round++) {
        link.set({ kind: 'delay', ms: Math.floor(random() * 50) });
        const { id } = await t.client.submit('burst', { n: 200 });
        const seqs: number[] = [];
        const types: string[] = [];
        const gauges: number[] = [];
        let lastState: string | undefined;
        await Promise.all([
          (async () => {
            for await (const event of watcher.job(id).events()) {
              seqs.push(event.seq);
              types.push(event.type);
            }
          })(),
          (async () => {
            for await (const job of watcher.job(id).progress()) {
              gauges.push(job.progress?.current ?? 0);
              lastState = job.state;
            }
          })(),
        ]);
        expect(seqs).toEqual(seqs.map((_, i) => i + 1));
        expect(types.at(-1)).toBe('JobCompleted');
        expect(types).toEqual(await t.events(id));
        expect(gauges).toEqual(gauges.toSorted((a, b) => a - b));
        expect([gauges.at(-1), lastState]).toEqual([200, 'COMPLETED']);
      }
    },
    90_000,
  );
});
