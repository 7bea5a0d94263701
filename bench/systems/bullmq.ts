import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { CONCURRENCY, JOB_OPTIONS, NOOP, submissions } from './bullmq-queue.ts';
import type { System } from './system.ts';

const UNFINISHED = ['waiting', 'active', 'delayed', 'prioritized', 'waiting-children'] as const;

/** BullMQ on Redis, the usual one. A job is as durable as that Redis is set to make it. It deletes a job that is done. */
export const bullmq: System = {
  id: 'bullmq',
  name: 'BullMQ',
  settings: {
    submit: 'queue.add and queue.addBulk, one connection to Redis',
    throughput: `concurrency ${CONCURRENCY.throughput}, finished jobs deleted`,
    latency: `concurrency ${CONCURRENCY.latency}, woken by a blocking read`,
  },
  worker: new URL('./bullmq-worker.ts', import.meta.url),
  async open({ redisUrl, redisPrefix }) {
    const queue = new Queue(NOOP, {
      connection: { url: redisUrl },
      prefix: redisPrefix,
      defaultJobOptions: JOB_OPTIONS,
    });
    await queue.waitUntilReady();
    const redis = new Redis(redisUrl);
    return {
      ...submissions(queue),
      hasUnfinished: async () => (await queue.getJobCountByTypes(...UNFINISHED)) > 0,
      async assertAllDone(jobs) {
        // Done jobs leave no trace but the number of the last one; failed ones stay.
        const left = await queue.getJobCountByTypes(...UNFINISHED, 'completed', 'failed');
        const last = await redis.get(`${redisPrefix}:${NOOP}:id`);
        if (left !== 0 || Number(last) !== jobs)
          throw new Error(`BullMQ has ${left} of ${last} jobs, not ${jobs} done`);
      },
      close: () => Promise.all([queue.close(), redis.quit()]),
    };
  },
};
