import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, QueueEvents } from 'bullmq';
import { WebSocket } from 'ws';
import { quantile } from './lib/figures.ts';
import { benchOptions } from './lib/options.ts';
import { print } from './lib/report.ts';
import { type Contender, compare, type FigureKind } from './lib/rounds.ts';
import { startServer } from './lib/server-process.ts';
import { type Machine, withServices } from './lib/services.ts';
import { createClient } from './systems/built.ts';
import { bullmq } from './systems/bullmq.ts';
import { CONCURRENCY, NOOP } from './systems/bullmq-queue.ts';
import { openWithWorker } from './systems/open.ts';
import { INPUT } from './systems/system.ts';
import { waymark } from './systems/waymark.ts';

/**
 * How soon a client knows that its job is done, when nothing else happens: from the call of submit, over HTTP, until a
 * subscription over a WebSocket says COMPLETED; beside BullMQ's `waitUntilFinished`, straight at Redis.
 */
const options = benchOptions();
const JOBS = options.short ? 20 : 200;
/** As in `dispatch.ts`. */
const PAUSE_MS = 23;
const WAIT_MS = 10_000;
const milliseconds: FigureKind = { unit: 'ms', better: 'lower', digits: 2 };

await withServices(async (machine) => {
  const comparisons = await compare(
    [await throughApi(machine), await throughQueueEvents(machine)],
    { p50: milliseconds, p99: milliseconds },
    options,
  );
  print(
    {
      benchmark: 'completion',
      what: `idle system, from the call of submit until the client knows that the job is done, ${JOBS} jobs a round`,
      settings: {
        Waymark:
          'waymark/client: submitJob over HTTP, then jobProgress over a WebSocket; API and worker in processes of their own',
        BullMQ: `queue.add, then job.waitUntilFinished(QueueEvents); concurrency ${CONCURRENCY.latency}, done jobs kept`,
      },
      comparisons,
    },
    machine,
    options,
  );
});

async function throughApi(machine: Machine): Promise<Contender> {
  const { database, submitter, worker } = await openWithWorker(waymark, machine, 'latency');
  // The API must know the task.
  await submitter.submit();
  const api = new URL('./systems/waymark-api.ts', import.meta.url);
  const url = await startServer(machine, api, [database.url, machine.redisUrl]);
  const client = createClient({ url, webSocket: WebSocket });
  machine.atEnd(async () => client.close());
  worker.send({ kind: 'start', jobs: Number.MAX_SAFE_INTEGER });
  await worker.next('started', WAIT_MS);
  return {
    name: 'Waymark',
    async run() {
      await database.settleDown();
      return timed(async () => {
        const job = await client.submit(NOOP, INPUT);
        let state = '';
        for await (const now of job.progress()) state = now.state;
        if (state !== 'COMPLETED') throw new Error(`the last state that the client saw is ${state}`);
      });
    },
  };
}

async function throughQueueEvents(machine: Machine): Promise<Contender> {
  const { worker, place } = await openWithWorker(bullmq, machine, 'latency');
  const connection = { url: place.redisUrl };
  // Who waits for a job must find it: done jobs are kept here.
  const queue = new Queue(NOOP, { connection, prefix: place.redisPrefix });
  const events = new QueueEvents(NOOP, { connection, prefix: place.redisPrefix });
  machine.atEnd(() => Promise.all([queue.close(), events.close()]));
  await events.waitUntilReady();
  worker.send({ kind: 'start', jobs: Number.MAX_SAFE_INTEGER });
  await worker.next('started', WAIT_MS);
  return {
    name: 'BullMQ',
    run: () =>
      timed(async () => {
        const job = await queue.add(NOOP, INPUT);
        await job.waitUntilFinished(events, WAIT_MS);
      }),
  };
}

async function timed(job: () => Promise<void>): Promise<Record<string, number>> {
  const waits: number[] = [];
  for (let n = 0; n < JOBS; n++) {
    await sleep(PAUSE_MS);
    const start = performance.now();
    await job();
    waits.push(performance.now() - start);
  }
  return { p50: quantile(waits, 0.5), p99: quantile(waits, 0.99) };
}
