import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk';
import { serveWorker } from '../lib/worker-protocol.ts';
import { config, logger, NOOP, QUEUE, STEPPED, WORK } from './dbos-settings.ts';
import type { SteppedInput } from './system.ts';

/** Workflows are registered once in a process, the handler is that of the present round. */
let handler: () => void = () => {};

DBOS.registerWorkflow(async () => handler(), { name: NOOP });
DBOS.registerWorkflow(
  async ({ steps }: SteppedInput) => {
    handler();
    for (let i = 0; i < steps; i++) await DBOS.runStep(async () => i, { name: `s${i}` });
  },
  { name: STEPPED },
);

serveWorker(async ({ databaseUrl, atOnce }, ofRound) => {
  handler = ofRound;
  const { name: applicationName } = config(databaseUrl);
  // A launched DBOS looks for a queue's limits once a second only: they must stand before.
  const client = await DBOSClient.create({ systemDatabaseUrl: databaseUrl, applicationName, logger });
  await client.registerQueue(QUEUE, { ...WORK, workerConcurrency: atOnce ?? WORK.workerConcurrency });
  await client.destroy();
  DBOS.setConfig(config(databaseUrl));
  await DBOS.launch();
  return { stop: () => DBOS.shutdown() };
});
