import { setTimeout as sleep } from 'node:timers/promises';
import { runBenchmark } from './lib/benchmark.ts';
import { drainRound } from './lib/drain-round.ts';
import { benchOptions } from './lib/options.ts';
import type { Figures } from './lib/rounds.ts';
import { usageOf } from './lib/usage.ts';
import { bullmq } from './systems/bullmq.ts';
import { graphile } from './systems/graphile.ts';
import { type OpenWorker, openWithWorker } from './systems/open.ts';
import { pgBoss } from './systems/pg-boss.ts';
import { waymark } from './systems/waymark.ts';

/** What a worker process takes: memory and processor while it waits, and memory at most while it drains a queue. On Linux. */
const options = benchOptions();
const JOBS = options.short ? 2_000 : 20_000;
const BULK = 1_000;
const REST_MS = options.short ? 500 : 5_000;
const IDLE_MS = options.short ? 500 : 10_000;
const LOOK_MS = 20;

await runBenchmark(
  {
    benchmark: 'memory',
    what: `one worker process, idle for ${IDLE_MS / 1_000} s, then draining ${JOBS} no-op jobs`,
    kinds: {
      'idle memory': { unit: 'MB', better: 'lower', digits: 0 },
      'idle CPU': { unit: '% of a core', better: 'lower', digits: 2 },
      'draining memory, at most': { unit: 'MB', better: 'lower', digits: 0 },
    },
    systems: [waymark, graphile, bullmq, pgBoss],
    open: (system, machine) => openWithWorker(system, machine, 'throughput'),
    roundOf: rest,
  },
  options,
);

function rest({ submitter, worker }: OpenWorker): () => Promise<Figures> {
  return async () => {
    worker.send({ kind: 'start', jobs: 1 });
    await worker.next('started', 10_000);
    await sleep(REST_MS);
    const before = await usageOf(worker.pid);
    await sleep(IDLE_MS);
    const after = await usageOf(worker.pid);
    worker.send({ kind: 'stop' });
    await worker.next('stopped', 10_000);

    for (let n = 0; n < JOBS; n += BULK) await submitter.submitMany(BULK);
    let most = 0;
    const looking = setInterval(async () => {
      most = Math.max(most, (await usageOf(worker.pid)).megabytes);
    }, LOOK_MS);
    await drainRound([worker], JOBS, async () => !(await submitter.hasUnfinished()));
    clearInterval(looking);
    return {
      'idle memory': after.megabytes,
      'idle CPU': ((after.cpuMs - before.cpuMs) / IDLE_MS) * 100,
      'draining memory, at most': most,
    };
  };
}
