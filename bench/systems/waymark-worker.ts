import { serveWorker } from '../lib/worker-protocol.ts';
import { createWaymark } from './built.ts';
import { CONCURRENCY, noop } from './waymark-task.ts';

serveWorker(async ({ databaseUrl, redisUrl, tuning }, handler) => {
  const waymark = await createWaymark({ databaseUrl, redisUrl });
  const worker = waymark.worker({ tasks: [noop(handler)], concurrency: CONCURRENCY[tuning] });
  await worker.start();
  return { stop: () => waymark.close() };
});
