import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { cleanUp } from '../cli/program.ts';
import { describePostgres } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';
import { askApi, SLACK, SWEEP, trial } from './bench.ts';

const SCHEDULES = 100;
const ROUNDS = 2;
const SAVE = `mutation ($input: ScheduleInput!) { saveSchedule(input: $input) { __typename } }`;

afterAll(cleanUp);

describePostgres('schedules', () => {
  test(`that are due submit one job each, whoever of five processes is killed meanwhile, ${ROUNDS} × ${SCHEDULES} times`, {
    timeout: 120_000,
  }, async (ctx) => {
    const random = seededRandom();
    const t = await trial(ctx);
    const [, , worker] = await Promise.all([t.api(), t.api(), t.worker(), t.worker()]);
    let victim = worker;
    await t.ends((await t.client.submit('echo', 0)).id);
    for (let i = 0; i < SCHEDULES; i++) {
      // Far away: in the trial they are due when it says so.
      const input = { name: `yearly ${i}`, cron: '0 0 1 1 *', task: 'echo', input: i, overlap: 'ALLOW' };
      expect(await askApi(t.first.url, SAVE, { input })).toMatchObject({
        saveSchedule: { __typename: 'SaveSchedulePayload' },
      });
    }
    for (let round = 1; round <= ROUNDS; round++) {
      await t.sql`update waymark.schedules set next_run_at = clock_timestamp()`;
      await pause(random() * SWEEP);
      victim.kill('SIGKILL');
      await victim.ended;
      victim = await t.worker();
      await eventually(
        async () => {
          const fired = await t.sql<{ n: number; jobs: number }[]>`
            select count(*)::int as n, x.jobs from (
              select count(j.id)::int as jobs from waymark.schedules c left join waymark.jobs j on j.schedule_id = c.id
              group by c.id) x group by x.jobs`;
          expect(fired).toMatchObject([{ n: SCHEDULES, jobs: round }]);
        },
        { timeoutMs: 20_000 + SLACK },
      );
    }
    // Whoever looks again fires nothing more.
    await t.ends((await t.client.submit('nap', { ms: 2 * SWEEP })).id);
    const [all] = await t.sql<{ n: number }[]>`
      select count(*)::int as n from waymark.jobs where schedule_id is not null`;
    expect(all?.n).toBe(ROUNDS * SCHEDULES);
  });
});
