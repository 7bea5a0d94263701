import { PgBoss } from 'pg-boss';
import { NOOP } from './pg-boss-settings.ts';
import { INPUT, type System } from './system.ts';

/** Connections of the submitting side, as pg-boss has it by itself. */
const POOL = 10;

/** pg-boss. It keeps a done job's row for a week. */
export const pgBoss: System = {
  id: 'pg-boss',
  name: 'pg-boss',
  settings: {
    submit: `boss.send and boss.insert over a pool of ${POOL}, no NOTIFY`,
    throughput: 'batches of 500, 4 at a time, each completed as one, no pause after a full batch, finished jobs kept',
    latency: 'batches of up to 10, one at a time, woken by LISTEN/NOTIFY',
  },
  worker: new URL('./pg-boss-worker.ts', import.meta.url),
  async open({ database: { url, sql } }, purpose) {
    // Maintenance is the worker's: here it would run in everybody else's rounds.
    const boss = new PgBoss({ connectionString: url, max: POOL, supervise: false, schedule: false });
    boss.on('error', (error) => console.error(error));
    await boss.start();
    await boss.createQueue(NOOP, { notify: purpose === 'latency' });
    return {
      submit: () => boss.send(NOOP, INPUT),
      submitMany: (count) =>
        boss.insert(
          NOOP,
          Array.from({ length: count }, () => ({ data: INPUT })),
        ),
      async hasUnfinished() {
        // Two probes of partial indexes; "not finished" as such would read the whole history.
        const [row] = await sql<{ left: boolean }[]>`
          select exists (select from pgboss.job where name = ${NOOP} and state < 'active')
              or exists (select from pgboss.job where name = ${NOOP} and state = 'active') as left`;
        return row?.left ?? true;
      },
      async assertAllDone(jobs) {
        const [row] = await sql<{ completed: number; others: number }[]>`
          select count(*) filter (where state = 'completed')::int as completed,
                 count(*) filter (where state <> 'completed')::int as others
          from pgboss.job where name = ${NOOP}`;
        if (row?.completed !== jobs || row.others !== 0) {
          throw new Error(`pg-boss has ${JSON.stringify(row)}, not ${jobs} completed`);
        }
      },
      close: () => boss.stop(),
    };
  },
};
