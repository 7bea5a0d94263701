import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk';
import { Pool } from 'pg';
import { config, logger, NOOP, QUEUE, STEPPED, WORK } from './dbos-settings.ts';
import { INPUT, type StepSubmitter, type System } from './system.ts';

/** Connections of each side, as DBOS has it by itself; 20 and 50 were not faster. */
const POOL = 10;

const WORKER = `a queue polled every ${WORK.minPollingIntervalMs} ms, pool of ${POOL}, full history kept`;

/** DBOS, durable workflows on Postgres. It keeps workflows with their input, their result and that of each step. */
export const dbos: System<StepSubmitter> = {
  id: 'dbos',
  name: 'DBOS',
  settings: {
    throughput: `concurrency ${WORK.workerConcurrency}, ${WORKER}`,
    steps: `DBOS.runStep, ${WORKER}`,
  },
  worker: new URL('./dbos-worker.ts', import.meta.url),
  async open({ database: { url, sql } }) {
    // Only a launch migrates without writing to stdout, which is the report's.
    DBOS.setConfig(config(url));
    await DBOS.launch();
    await DBOS.shutdown();
    const pool = new Pool({ connectionString: url, max: POOL });
    // A connection that the end of the run cuts is no trouble to tell of.
    pool.on('error', () => {});
    const { name: applicationName } = config(url);
    const client = await DBOSClient.create({
      systemDatabaseUrl: url,
      systemDatabasePool: pool,
      applicationName,
      logger,
    });
    const enqueue = (workflowName: string, input: unknown) => client.enqueue({ queueName: QUEUE, workflowName }, input);
    // It has no call for many.
    const enqueueMany = (count: number, workflowName: string, input: unknown) =>
      Promise.all(Array.from({ length: count }, () => enqueue(workflowName, input)));
    return {
      submit: () => enqueue(NOOP, INPUT),
      submitMany: (count) => enqueueMany(count, NOOP, INPUT),
      submitStepped: (count, steps) => enqueueMany(count, STEPPED, { ...INPUT, steps }),
      async hasUnfinished() {
        const [row] = await sql<{ left: boolean }[]>`
          select exists (select from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')) as left`;
        return row?.left ?? true;
      },
      async assertAllDone(jobs, steps = 0) {
        const [row] = await sql<{ succeeded: number; others: number; steps: number }[]>`
          select (select count(*)::int from dbos.workflow_status where status = 'SUCCESS') as succeeded,
                 (select count(*)::int from dbos.workflow_status where status <> 'SUCCESS') as others,
                 (select count(*)::int from dbos.operation_outputs) as steps`;
        const expected = { succeeded: jobs, others: 0, steps };
        if (JSON.stringify(row) !== JSON.stringify(expected)) {
          throw new Error(`DBOS has ${JSON.stringify(row)}, not ${JSON.stringify(expected)}`);
        }
      },
      async close() {
        await client.destroy();
        await pool.end();
      },
    };
  },
};
