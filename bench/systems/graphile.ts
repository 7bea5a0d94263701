import { makeWorkerUtils } from 'graphile-worker';
import { Pool } from 'pg';
import { quiet } from './graphile-settings.ts';
import { INPUT, type System } from './system.ts';

/** Connections of the submitting side, as graphile-worker has it by itself; 20 and 64 were not faster. */
const POOL = 10;

/** graphile-worker, the fastest queue on Postgres that we know. It deletes a job that is done. */
export const graphile: System = {
  id: 'graphile-worker',
  name: 'graphile-worker',
  settings: {
    submit: `utils.addJob and utils.addJobs over a pool of ${POOL}`,
    throughput: 'concurrency 50, local queue 1000, completions batched, finished jobs deleted',
    latency: 'concurrency 10, no local queue, woken by LISTEN/NOTIFY',
  },
  worker: new URL('./graphile-worker.ts', import.meta.url),
  async open({ database: { url, sql } }) {
    const pool = new Pool({ connectionString: url, max: POOL });
    // A connection that the end of the run cuts must not end the process.
    pool.on('error', () => {});
    pool.on('connect', (client) => void client.on('error', () => {}));
    const utils = await makeWorkerUtils({ pgPool: pool, logger: quiet });
    await utils.migrate();
    return {
      submit: () => utils.addJob('noop', INPUT),
      submitMany: (count) =>
        utils.addJobs(Array.from({ length: count }, () => ({ identifier: 'noop', payload: INPUT }))),
      async hasUnfinished() {
        const [row] = await sql<{ left: boolean }[]>`
          select exists (select from graphile_worker._private_jobs) as left`;
        return row?.left ?? true;
      },
      async assertAllDone() {
        // Done jobs leave no trace, failed ones stay: an empty table is all that can be asked.
        const [row] = await sql<{ jobs: number }[]>`
          select count(*)::int as jobs from graphile_worker._private_jobs`;
        if (row?.jobs !== 0) throw new Error(`graphile-worker still has ${row?.jobs} jobs`);
      },
      async close() {
        await utils.release();
        await pool.end();
      },
    };
  },
};
