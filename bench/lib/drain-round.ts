import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerProcess } from './worker-process.ts';

const ROUND_MS = 120_000;
/** Between two looks at the store: what they take is taken from the workers. */
const LOOK_EVERY_MS = 1;
/** Of several workers none knows when all is done, so that the store is asked all the time. */
const LOOK_EVERY_MS_SEVERAL = 25;

/** Lets workers empty a queue of `jobs` jobs. @param isFinished asks the store whether all of them are durably finished */
export async function drainRound(
  workers: readonly WorkerProcess[],
  jobs: number,
  isFinished: () => Promise<boolean>,
): Promise<{ perSecond: number; cpuMicrosPerJob: number }> {
  const share = jobs / workers.length;
  const firsts = await Promise.all(
    workers.map(async (worker) => {
      // Of several workers nobody knows beforehand which gets how many: each tells of its first handler only.
      worker.send({ kind: 'start', jobs: workers.length === 1 ? share : 1 });
      return BigInt((await worker.next('drained', ROUND_MS)).first);
    }),
  );
  // The last handler has begun, or will soon; the round lasts until the store says that everything is finished.
  const waitMs = workers.length === 1 ? LOOK_EVERY_MS : LOOK_EVERY_MS_SEVERAL;
  while (!(await isFinished())) await sleep(waitMs);
  const end = process.hrtime.bigint();
  let cpuMicros = 0;
  for (const worker of workers) {
    worker.send({ kind: 'stop' });
    cpuMicros += (await worker.next('stopped', ROUND_MS)).cpuMicros;
  }
  const [first = end] = firsts.toSorted((a, b) => (a < b ? -1 : 1));
  return { perSecond: jobs / (Number(end - first) / 1e9), cpuMicrosPerJob: cpuMicros / jobs };
}
