import { now } from '../lib/live-protocol.ts';
import { ServerProcess } from '../lib/server-process.ts';
import type { Machine } from '../lib/services.ts';
import { createWaymark, defineTask } from './built.ts';
import type { LiveJob, LiveSystem } from './live-system.ts';

/** A job that runs, and the call of its handler's context by which the benchmark makes facts of it. */
interface RunningJob extends LiveJob {
  step(key: string, fn: () => null): Promise<unknown>;
}

/**
 * Waymark's API as the server. The facts are checkpoints of jobs that run in this process, saved one by one; new jobs for
 * lists are submitted from here, into a queue that nobody works on. All goes through Postgres, and to the API over Redis.
 */
export async function waymarkLive(machine: Machine, jobs: number): Promise<LiveSystem> {
  const { url } = await machine.createDatabase('live');
  const service = await createWaymark({ databaseUrl: url, redisUrl: machine.redisUrl });
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  machine.atEnd(() => {
    end();
    return service.close();
  });
  const running = await startJobs();
  const listed = defineTask({ name: 'listed', run: async () => {} });
  let submitted = 0;

  /** Resolves when all of them run; they do so until the end. */
  async function startJobs(): Promise<RunningJob[]> {
    const started: RunningJob[] = [];
    await new Promise<void>((resolve, reject) => {
      const task = defineTask({
        name: 'live',
        run: async (ctx) => {
          // Submitted and started: two facts.
          started.push({ id: ctx.job.id, lastSeq: 2, step: ctx.step });
          if (started.length === jobs) resolve();
          await ended;
        },
      });
      const worker = service.worker({ tasks: [task], queues: ['default'], concurrency: jobs });
      const all = Array.from({ length: jobs }, () => ({ task, input: {} }));
      worker
        .start()
        .then(() => service.submitMany(all))
        .catch(reject);
    });
    return started;
  }

  async function publishEvents(of: readonly LiveJob[], each: number): Promise<void> {
    await Promise.all(
      of.map(async (job) => {
        job.lastSeq += each;
        // The key says when the save began: subscribers get it with the fact.
        for (let n = 0; n < each; n++) await (job as RunningJob).step(String(now()), () => null);
      }),
    );
  }

  return {
    name: 'Waymark',
    setting: 'API, Postgres and Redis as shipped; facts are checkpoints of running jobs, each saved by ctx.step',
    async start() {
      const api = new URL('./waymark-api.ts', import.meta.url);
      return {
        server: await ServerProcess.start(api, [url, machine.redisUrl]),
        jobs: running,
        publishEvents,
        publishJobs: (count) =>
          service.submitMany(
            Array.from({ length: count }, () => ({
              task: listed,
              input: {},
              options: { queue: 'lists', tags: [`${submitted++}.${now()}`] },
            })),
          ),
      };
    },
  };
}
