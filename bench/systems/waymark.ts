import { createWaymark } from './built.ts';
import { INPUT, type StepSubmitter, type System } from './system.ts';
import { CONCURRENCY, noop, stepped } from './waymark-task.ts';

/** Waymark through its public surface, with Redis as in production. It keeps every attempt and event. */
export const waymark: System<StepSubmitter> = {
  id: 'waymark',
  name: 'Waymark',
  settings: {
    submit: 'waymark.submit and waymark.submitMany, pools as shipped, live channel over Redis',
    throughput: `concurrency ${CONCURRENCY.throughput}, full history kept, live channel over Redis`,
    latency: `concurrency ${CONCURRENCY.latency}, woken over Redis`,
    steps: 'ctx.step, full history kept, live channel over Redis',
  },
  worker: new URL('./waymark-worker.ts', import.meta.url),
  async open({ database: { url, sql }, redisUrl }) {
    const service = await createWaymark({ databaseUrl: url, redisUrl });
    const task = noop(() => {});
    const steppedTask = stepped(() => {});
    return {
      submit: () => service.submit(task, INPUT),
      submitMany: (count) => service.submitMany(Array.from({ length: count }, () => ({ task, input: INPUT }))),
      submitStepped: (count, steps) =>
        service.submitMany(Array.from({ length: count }, () => ({ task: steppedTask, input: { ...INPUT, steps } }))),
      async hasUnfinished() {
        // Two probes of partial indexes; "not finished" as such would read the whole history.
        const [row] = await sql<{ left: boolean }[]>`
          select exists (select from waymark.job_states where state = 'QUEUED' and not blocked)
              or exists (select from waymark.job_states where state = 'RUNNING') as left`;
        return row?.left ?? true;
      },
      async assertAllDone(jobs, steps = 0) {
        const [row] = await sql<{ completed: number; attempts: number; checkpoints: number; events: number }[]>`
          select (select count(*)::int from waymark.job_states where state = 'COMPLETED') as completed,
                 (select count(*)::int from waymark.attempts where outcome = 'SUCCEEDED') as attempts,
                 (select count(*)::int from waymark.checkpoints) as checkpoints,
                 (select count(*)::int from waymark.events) as events`;
        // Submitted, started, each step, completed: the whole history of every job.
        const expected = { completed: jobs, attempts: jobs, checkpoints: steps, events: 3 * jobs + steps };
        if (JSON.stringify(row) !== JSON.stringify(expected)) {
          throw new Error(`Waymark has ${JSON.stringify(row)}, not ${JSON.stringify(expected)}`);
        }
      },
      close: () => service.close(),
    };
  },
};
