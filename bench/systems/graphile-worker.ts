import { run } from 'graphile-worker';
import { serveWorker } from '../lib/worker-protocol.ts';
import { quiet, WORKER } from './graphile-settings.ts';

serveWorker(async ({ databaseUrl, tuning }, handler) => {
  const runner = await run({
    preset: { worker: { connectionString: databaseUrl, logger: quiet, ...WORKER[tuning] } },
    noHandleSignals: true,
    taskList: {
      noop: async () => {
        handler();
      },
    },
  });
  return runner;
});
