import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from './lib/figures.ts';
import { benchOptions } from './lib/options.ts';
import { print } from './lib/report.ts';
import { type Contender, compare, type FigureKind } from './lib/rounds.ts';
import { withServices } from './lib/services.ts';
import { graphile } from './systems/graphile.ts';
import { openWithWorker } from './systems/open.ts';
import { waymark } from './systems/waymark.ts';

/** How soon a job's handler starts in another process when nothing else happens: from the call of submit on. */
const options = benchOptions();
const JOBS = options.short ? 20 : 200;
/** Between two jobs both sides come to rest. Not a round number, so that no timer beats in step with it. */
const PAUSE_MS = 23;
const JOB_MS = 10_000;
const milliseconds: FigureKind = { unit: 'ms', better: 'lower', digits: 2 };

await withServices(async (machine) => {
  const systems = [
    await openWithWorker(waymark, machine, 'latency'),
    await openWithWorker(graphile, machine, 'latency'),
  ] as const;
  try {
    const [ours, peer] = systems;
    print(
      {
        benchmark: 'dispatch',
        what: `idle system, from the call of submit until the handler starts in another process, ${JOBS} jobs a round`,
        settings: { [ours.name]: waymark.settings.latency, [peer.name]: graphile.settings.latency },
        comparisons: await compare([dispatch(ours), dispatch(peer)], { p50: milliseconds, p99: milliseconds }, options),
      },
      machine,
      options,
    );
  } finally {
    await Promise.all(systems.map((system) => system.close()));
  }
});

function dispatch({ name, database, submitter, worker }: Awaited<ReturnType<typeof openWithWorker>>): Contender {
  let submitted = 0;
  return {
    name,
    async run() {
      await database.settleDown();
      worker.send({ kind: 'start', jobs: JOBS });
      await worker.next('started', JOB_MS);
      const waits: number[] = [];
      for (let n = 0; n < JOBS; n++) {
        await sleep(PAUSE_MS);
        const handled = worker.next('handled', JOB_MS);
        const begin = process.hrtime.bigint();
        const [{ at }] = await Promise.all([handled, submitter.submit()]);
        // Both processes read the machine's one monotonic clock.
        waits.push(Number(BigInt(at) - begin) / 1e6);
      }
      submitted += JOBS;
      while (await submitter.hasUnfinished()) await sleep(1);
      worker.send({ kind: 'stop' });
      await worker.next('stopped', JOB_MS);
      await submitter.assertAllDone(submitted);
      return { p50: quantile(waits, 0.5), p99: quantile(waits, 0.99) };
    },
  };
}
