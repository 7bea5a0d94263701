import { createPostgresBackend, Queue, runMigrations } from 'bullmq';
import { Client } from 'pg';
import { CONCURRENCY, JOB_OPTIONS, NOOP, submissions } from './bullmq-queue.ts';
import type { System } from './system.ts';

/** Connections of each side, as BullMQ has it by itself; 3 to 8 and 12 to 40 drained more slowly. */
const POOL = 10;

/** BullMQ on its Postgres back end. It deletes a job that is done. */
export const bullmqPostgres: System = {
  id: 'bullmq-postgres',
  name: 'BullMQ on Postgres',
  settings: {
    submit: `queue.add and queue.addBulk over a pool of ${POOL}`,
    throughput: `concurrency ${CONCURRENCY.throughput}, pool of ${POOL}, finished jobs deleted`,
    latency: `concurrency ${CONCURRENCY.latency}, woken by LISTEN/NOTIFY`,
  },
  worker: new URL('./bullmq-postgres-worker.ts', import.meta.url),
  async open({ database: { url, sql } }) {
    const client = new Client({ connectionString: url });
    await client.connect();
    await runMigrations(client);
    await client.end();
    const queue = new Queue(
      NOOP,
      { connection: { connectionString: url, max: POOL }, defaultJobOptions: JOB_OPTIONS },
      createPostgresBackend,
    );
    await queue.waitUntilReady();
    return {
      ...submissions(queue),
      async hasUnfinished() {
        const [row] = await sql<{ left: boolean }[]>`select exists (select from bullmq.job) as left`;
        return row?.left ?? true;
      },
      async assertAllDone(jobs) {
        // Done jobs leave no trace but the number of the last one; failed ones stay.
        const [row] = await sql<{ left: number; last: number }[]>`
          select (select count(*)::int from bullmq.job) as left,
                 (select last_value::int from bullmq.job_seq) as last`;
        if (row?.left !== 0 || row.last !== jobs) {
          throw new Error(`BullMQ on Postgres has ${JSON.stringify(row)}, not ${jobs} done`);
        }
      },
      close: () => queue.close(),
    };
  },
};
