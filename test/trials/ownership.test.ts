import { afterAll, describe, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { LEASE, RECOVERY, trial } from './bench.ts';

afterAll(cleanUp);

describePostgres('a job belongs to the worker that beats for it', () => {
  describe('and a handler that blocks the event loop', () => {
    test.concurrent('does not lose its own job or its neighbours, however long, while the block is allowed', async (ctx) => {
      const t = await trial(ctx);
      await t.worker();
      const { file, lines } = await t.ledger();
      const neighbour = await t.client.submit('nap', { ms: 100 });
      const spinning = await t.client.submit('spin', { ms: 2 * LEASE, ledger: file });
      const napping = await t.client.submit('nap', { ms: 3 * LEASE });
      await eventually(() => expect(lines()).toHaveLength(1));
      // Somebody else is there and would take what is given away.
      await t.worker();
      for (const { id } of [neighbour, spinning, napping]) {
        expect(await t.ends(id)).toBe('COMPLETED');
        expect(await t.attempts(id)).toMatchObject([{ number: 1, outcome: 'SUCCEEDED' }]);
      }
      expect(lines().map(([, , what]) => what)).toEqual(['begin', 'after']);
    }, 60_000);

    test.concurrent('is seen while it blocks', async (ctx) => {
      const t = await trial(ctx);
      await t.worker();
      const { id } = await t.client.submit('spin', { ms: LEASE });
      await t.runs(id);
      const health = async () =>
        (await t.query<{ job: { health: string } }>('query ($id: ID!) { job(id: $id) { health } }', { id })).job.health;
      await eventually(async () => expect(await health()).toBe('LOOP_BLOCKED'));
      expect(await t.ends(id)).toBe('COMPLETED');
    }, 60_000);

    test.concurrent('loses what its worker runs when it blocks for longer than allowed; what it then says is refused, and its process goes on', async (ctx) => {
      const t = await trial(ctx, { WAYMARK_MAX_BLOCK: '1s' });
      const first = await t.worker();
      const { file, lines } = await t.ledger();
      const napping = await t.client.submit('nap', { ms: 3 * LEASE });
      await t.runs(napping.id);
      const spinning = await t.client.submit('spin', { ms: 2 * LEASE, ledger: file });
      await eventually(() => expect(lines()).toHaveLength(1));
      await t.worker();
      expect(await t.ends(spinning.id)).toBe('COMPLETED');
      expect(await t.attempts(spinning.id)).toMatchObject([
        { number: 1, outcome: 'NOT_ADVANCING', code: 'NOT_ADVANCING' },
        { number: 2, outcome: 'SUCCEEDED' },
      ]);
      expect(await spinning.result()).toEqual({ attempt: 2 });
      expect(await t.ends(napping.id)).toBe('COMPLETED');
      expect(await t.attempts(napping.id)).toMatchObject([{ outcome: 'NOT_ADVANCING' }, { outcome: 'SUCCEEDED' }]);
      // The first worker wakes up, and works on under a new id.
      await eventually(() => expect(first.stderr()).toContain('goes on under a new id'), { timeoutMs: 3 * LEASE });
      const pids = lines().filter(([, , what]) => what === 'after');
      expect(pids).toHaveLength(1);
      const next = await Promise.all(Array.from({ length: 8 }, () => t.client.submit('nap', { ms: 500 })));
      for (const { id } of next) expect(await t.ends(id)).toBe('COMPLETED');
      first.kill('SIGTERM');
      expect((await first.ended).code).toBe(0);
    }, 60_000);

    test.concurrent('is ended as not advancing by its own limit; attempt 2 alone decides (B01)', async (ctx) => {
      const t = await trial(ctx);
      const first = await t.worker();
      const { id } = await t.client.submit('watched-spin', { ms: 4 * LEASE });
      await t.runs(id);
      await t.worker();
      expect(await t.ends(id, RECOVERY + 10_000)).toBe('COMPLETED');
      await eventually(() => expect(first.stderr()).toMatch(/no longer owns? its job|no longer owned its job/), {
        timeoutMs: 5 * LEASE,
      });
      expect(await t.attempts(id)).toMatchObject([
        { number: 1, outcome: 'NOT_ADVANCING' },
        { number: 2, outcome: 'SUCCEEDED' },
      ]);
      expect((await t.events(id)).filter((type) => type === 'JobCompleted')).toHaveLength(1);
      expect((await t.events(id)).at(-1)).toBe('JobCompleted');
    }, 60_000);
  });
});
