import type { Sql } from 'postgres';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/db/open.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { mostAtOnce, narrowestMs, startsIn } from '../support/starts.ts';
import { trial } from './bench.ts';

const UPDATE = `mutation ($name: String!, $maxRunning: Int, $rateLimit: RateLimitInput) {
  updateQueue(name: $name, maxRunning: $maxRunning, rateLimit: $rateLimit) { __typename }
}`;
const WORKERS = 4;
const JOBS = 80;

describePostgres('limits of queues', () => {
  test(`hold over ${WORKERS} worker processes, one of which is killed`, { timeout: 120_000 }, async (context) => {
    // Without Redis: nothing but polls and what the workers foresee.
    const { client, query, databaseUrl, worker, ends, sql } = await trial(context, { WAYMARK_LEASE: '2s' });
    const database = await openDatabase({ url: databaseUrl });
    context.onTestFinished(() => database.close());
    const processes = await Promise.all(Array.from({ length: WORKERS }, () => worker()));
    for (const queue of ['slim', 'slow']) {
      const { job } = await client.submit('echo', 0, { queue, delay: '1h' });
      await client.cancel(job.id);
    }
    const rateLimit = { max: 10, per: '500ms' };
    await query(UPDATE, { name: 'slim', maxRunning: 3 });
    await query(UPDATE, { name: 'slow', rateLimit });

    const ids: string[] = [];
    for (let i = 0; i < JOBS; i++) {
      ids.push((await client.submit('nap', { ms: 50 }, { queue: 'slim' })).id);
      ids.push((await client.submit('echo', i, { queue: 'slow' })).id);
    }
    await eventually(async () => expect(await completed(sql)).toBeGreaterThan(JOBS / 4), { timeoutMs: 30_000 });
    processes[0]?.kill('SIGKILL');
    for (const id of ids) expect(await ends(id, 60_000)).toBe('COMPLETED');

    const slow = await startsIn(database.work, 'slow');
    expect(slow.length).toBeGreaterThanOrEqual(JOBS);
    expect(narrowestMs(slow, rateLimit.max)).toBeGreaterThanOrEqual(500);
    // What the killed worker ran counts until it is rescued, as it does for the limit.
    expect(mostAtOnce(await startsIn(database.work, 'slim'))).toBeLessThanOrEqual(3);
  });
});

async function completed(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: number }[]>`select count(*)::int as n from waymark.job_states where state = 'COMPLETED'`;
  return row?.n ?? 0;
}
