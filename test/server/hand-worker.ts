import { parseId } from '../../src/core/ids.ts';
import type { ClaimedJob } from '../../src/engine/types.ts';
import { eventually } from '../support/eventually.ts';
import { taskNamed } from '../support/factory.ts';
import type { Service } from './service.ts';

/** A worker that the test plays itself. Jobs by their public ids. */
export interface HandWorker {
  /** Claims one job after the other, as the line is, until this one came: it is RUNNING then. */
  start(id: string): Promise<ClaimedJob>;
  complete(id: string): Promise<void>;
  /** Ends it with an error that is not retried. */
  fail(id: string, message?: string): Promise<void>;
  /** Stops it, as after a request to cancel. */
  stop(id: string): Promise<void>;
  report(id: string, current: number, total: number): Promise<void>;
}

export async function handWorker(service: Service): Promise<HandWorker> {
  const { execution } = service.engine;
  const workerId = await service.worker([taskNamed('echo')]);
  const claimed = new Map<string, ClaimedJob>();

  async function start(id: string): Promise<ClaimedJob> {
    const uuid = parseId('Job', id);
    return eventually(async () => {
      for (const job of await execution.claim(workerId, { queues: null, tasks: ['echo'], limit: 1 })) {
        claimed.set(job.id, job);
      }
      const job = claimed.get(uuid);
      if (!job) throw new Error(`${id} cannot be claimed`);
      return job;
    });
  }

  async function end(id: string, outcome: Omit<Parameters<typeof execution.settle>[0], 'jobId' | 'attempt'>) {
    const { id: jobId, attempt } = await start(id);
    claimed.delete(jobId);
    const { status } = await execution.settle({ jobId, attempt, ...outcome });
    if (status !== 'settled') throw new Error(`${id} was not settled: ${status}`);
  }

  return {
    start,
    complete: (id) => end(id, { outcome: 'SUCCEEDED', result: '1', resultDigest: 'x' }),
    fail: (id, message = 'disk full') =>
      end(id, {
        outcome: 'FAILED',
        error: { code: 'BAD', message, retryable: false, attempt: 1, at: new Date().toISOString() },
      }),
    stop: (id) => end(id, { outcome: 'CANCELED' }),
    async report(id, current, total) {
      const { id: jobId, attempt } = await start(id);
      const progress = {
        stage: null,
        stageIndex: null,
        stageCount: null,
        nextStage: null,
        current,
        total,
        unit: null,
        message: null,
        data: null,
        ratePerSecond: null,
        updatedAt: new Date().toISOString(),
      };
      await execution.flushProgress([{ jobId, attempt, progress }]);
    },
  };
}
