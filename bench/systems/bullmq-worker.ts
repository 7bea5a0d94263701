import { Worker } from 'bullmq';
import { serveWorker } from '../lib/worker-protocol.ts';
import { CONCURRENCY, NOOP } from './bullmq-queue.ts';

serveWorker(async ({ redisUrl, redisPrefix, tuning }, handler) => {
  const worker = new Worker(NOOP, async () => handler(), {
    connection: { url: redisUrl, maxRetriesPerRequest: null },
    prefix: redisPrefix,
    concurrency: CONCURRENCY[tuning],
  });
  worker.on('error', (error) => console.error(error));
  await worker.waitUntilReady();
  return { stop: () => worker.close() };
});
