import { createWaymark } from './built.ts';
import { INPUT, type System } from './system.ts';
import { CONCURRENCY, noop } from './waymark-task.ts';

/** Waymark through its public surface, with Redis as in production. It keeps every attempt and event. */
export const waymark: System = {
  id: 'waymark',
  name: 'Waymark',
  settings: {
    submit: 'waymark.submit and waymark.submitMany, pools as shipped, live channel over Redis',
    throughput: `concurrency ${CONCURRENCY.throughput}, full history kept, live channel over Redis`,
    latency: `concurrency ${CONCURRENCY.latency}, woken over Redis`,
  },
  worker: new URL('./waymark-worker.ts', import.meta.url),
  async open({ redisUrl }, { url, sql }) {
    const service = await createWaymark({ databaseUrl: url, redisUrl });
    const task = noop(() => {});
    return {
      submit: () => service.submit(task, INPUT),
      submitMany: (count) => service.submitMany(Array.from({ length: count }, () => ({ task, input: INPUT }))),
      async hasUnfinished() {
        // Two probes of partial indexes; "not finished" as such would read the whole history.
        const [row] = await sql<{ left: boolean }[]>`
          select exists (select from waymark.job_states where state = 'QUEUED' and not blocked)
              or exists (select from waymark.job_states where state = 'RUNNING') as left`;
        return row?.left ?? true;
      },
      async assertAllDone(jobs) {
        const [row] = await sql<{ completed: number; attempts: number; events: number }[]>`
          select (select count(*)::int from waymark.job_states where state = 'COMPLETED') as completed,
                 (select count(*)::int from waymark.attempts where outcome = 'SUCCEEDED') as attempts,
                 (select count(*)::int from waymark.events) as events`;
        // Submitted, started, completed: the whole history of every job.
        const expected = { completed: jobs, attempts: jobs, events: 3 * jobs };
        if (JSON.stringify(row) !== JSON.stringify(expected)) {
          throw new Error(`Waymark has ${JSON.stringify(row)}, not ${JSON.stringify(expected)}`);
        }
      },
      close: () => service.close(),
    };
  },
};
