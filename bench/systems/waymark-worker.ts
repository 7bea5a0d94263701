import { serveWorker } from '../lib/worker-protocol.ts';
import { createWaymark } from './built.ts';
import { CONCURRENCY, noop, stepped } from './waymark-task.ts';

serveWorker(async ({ databaseUrl, redisUrl, tuning, atOnce }, handler) => {
  const waymark = await createWaymark({ databaseUrl, redisUrl });
  const tasks = [noop(handler), stepped(handler)];
  // Not the queue of others, which some benchmarks fill.
  const worker = waymark.worker({ tasks, queues: ['default'], concurrency: atOnce ?? CONCURRENCY[tuning] });
  await worker.start();
  return { stop: () => waymark.close() };
});
