import { createPostgresBackend, Worker } from 'bullmq';
import { serveWorker } from '../lib/worker-protocol.ts';
import { CONCURRENCY, NOOP } from './bullmq-queue.ts';

serveWorker(async ({ databaseUrl, tuning }, handler) => {
  const worker = new Worker(
    NOOP,
    async () => handler(),
    { connection: databaseUrl, concurrency: CONCURRENCY[tuning] },
    createPostgresBackend,
  );
  worker.on('error', (error) => console.error(error));
  await worker.waitUntilReady();
  return { stop: () => worker.close() };
});
