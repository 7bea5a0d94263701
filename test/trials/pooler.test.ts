import { fileURLToPath } from 'node:url';
import { afterAll, expect, type TestContext, test } from 'vitest';
import { WebSocket } from 'ws';
import { createClient } from '../../src/client/index.ts';
import { cleanUp } from '../cli/program.ts';
import type e2eTasks from '../e2e/fixtures/tasks.ts';
import { createPostgresDatabase, describePostgres } from '../support/database.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { trial } from './bench.ts';

const E2E_TASKS = fileURLToPath(new URL('../e2e/fixtures/tasks.ts', import.meta.url));

afterAll(cleanUp);

async function pooled(ctx: TestContext): Promise<string> {
  const direct = await createPostgresDatabase({ empty: true });
  const pooler = await startPgBouncer(direct);
  if ('missing' in pooler) {
    if (process.env.CI === 'true') throw new Error(pooler.missing);
    ctx.skip(pooler.missing);
    return '';
  }
  ctx.onTestFinished(() => pooler.stop());
  return pooler.url;
}

describePostgres('behind PgBouncer in transaction mode', () => {
  test.concurrent.for([
    ['with the documented setting', '?prepare=false'],
    ['without any setting, by itself', ''],
  ])(
    'migrations, jobs, batches in transactions, cancels and streams work, %s (B72)',
    { timeout: 120_000 },
    async ([, setting], ctx) => {
      const url = await pooled(ctx);
      const t = await trial(ctx, {}, { databaseUrl: url + setting });
      const [worker] = await Promise.all([t.worker({}, E2E_TASKS), t.worker()]);
      const client = createClient<typeof e2eTasks>({ url: `${t.first.url}/graphql`, webSocket: WebSocket });
      const batches = await Promise.all(
        Array.from({ length: 5 }, () => client.submit('batches', { items: 500, size: 50 })),
      );
      const { file, lines } = await t.ledger();
      const stepping = await t.client.submit('steps', { n: 5, ms: 20, ledger: file });
      const napping = await t.client.submit('nap', { ms: 60_000 });
      await t.runs(napping.id);
      const types: string[] = [];
      const watching = (async () => {
        for await (const event of t.client.job(napping.id).events()) types.push(event.type);
      })();
      await t.client.cancel(napping.id);
      expect(await t.ends(napping.id)).toBe('CANCELED');
      await watching;
      expect(types.at(-1)).toBe('JobCanceled');
      for (const job of batches) expect(await job.result()).toEqual({ processed: 500, succeeded: 500, failed: 0 });
      const [rows] = await t.sql<
        { n: number }[]
      >`select count(distinct (job, item))::int as n, count(*) as all from written`;
      expect(rows).toEqual({ n: 2_500, all: '2500' });
      expect(await t.ends(stepping.id)).toBe('COMPLETED');
      expect(lines()).toHaveLength(5);
      await client.close();
      worker.kill('SIGTERM');
      expect((await worker.ended).code).toBe(0);
      for (const text of [t.first.stderr(), worker.stderr()]) expect(text).not.toMatch(/prepared statement/);
    },
  );
});
