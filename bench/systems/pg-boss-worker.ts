import { PgBoss } from 'pg-boss';
import { serveWorker } from '../lib/worker-protocol.ts';
import { NOOP, WORK } from './pg-boss-settings.ts';

serveWorker(async ({ databaseUrl, tuning }, handler) => {
  const boss = new PgBoss({ connectionString: databaseUrl, useListenNotify: tuning === 'latency' });
  boss.on('error', (error) => console.error(error));
  await boss.start();
  await boss.work(NOOP, WORK[tuning], async (jobs) => {
    for (let n = 0; n < jobs.length; n++) handler();
  });
  return { stop: () => boss.stop() };
});
