import { setTimeout as sleep } from 'node:timers/promises';
import { benchOptions } from './lib/options.ts';
import { print } from './lib/report.ts';
import { type Contender, compare } from './lib/rounds.ts';
import { withServices } from './lib/services.ts';
import { graphile } from './systems/graphile.ts';
import { openWithWorker } from './systems/open.ts';
import { waymark } from './systems/waymark.ts';

/** How fast one worker process empties a full queue of no-op jobs, each durably finished. */
const options = benchOptions();
const JOBS = options.short ? 2_000 : 20_000;
const BULK = 1_000;
const ROUND_MS = 120_000;

await withServices(async (machine) => {
  const systems = [
    await openWithWorker(waymark, machine, 'throughput'),
    await openWithWorker(graphile, machine, 'throughput'),
  ] as const;
  try {
    const [ours, peer] = systems;
    print(
      {
        benchmark: 'drain',
        what: `${JOBS} no-op jobs, one worker process, from the first handler's start until all are durably finished`,
        settings: { [ours.name]: waymark.settings.throughput, [peer.name]: graphile.settings.throughput },
        comparisons: await compare(
          [drain(ours), drain(peer)],
          {
            drain: { unit: 'jobs/s', better: 'higher', digits: 0 },
            'worker CPU': { unit: 'µs/job', better: 'lower', digits: 1 },
          },
          options,
        ),
      },
      machine,
      options,
    );
  } finally {
    await Promise.all(systems.map((system) => system.close()));
  }
});

function drain({ name, database, submitter, worker }: Awaited<ReturnType<typeof openWithWorker>>): Contender {
  let submitted = 0;
  return {
    name,
    async run() {
      for (let n = 0; n < JOBS; n += BULK) await submitter.submitMany(BULK);
      submitted += JOBS;
      await database.settleDown();
      worker.send({ kind: 'start', jobs: JOBS });
      const { first, cpuMicros } = await worker.next('drained', ROUND_MS);
      // The last handler has begun; the round lasts until the database says that everything is finished.
      while (await submitter.hasUnfinished()) await sleep(1);
      const end = process.hrtime.bigint();
      worker.send({ kind: 'stop' });
      await worker.next('stopped', ROUND_MS);
      await submitter.assertAllDone(submitted);
      return { drain: JOBS / (Number(end - BigInt(first)) / 1e9), 'worker CPU': cpuMicros / JOBS };
    },
  };
}
