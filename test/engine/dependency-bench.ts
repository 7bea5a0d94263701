import { newUuid } from '../../src/core/ids.ts';
import type { DependencyPolicy } from '../../src/core/job.ts';
import type { JobState } from '../../src/core/state.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { ClaimedJob, SubmitRequest } from '../../src/engine/types.ts';
import { createMemoryChannel } from '../../src/events/memory.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { engineOptions, me, taskNamed } from '../support/factory.ts';

/** An engine with a worker that the test plays itself: it claims and settles by hand. */
export interface DependencyBench {
  engine: Engine;
  database: TestDatabase;
  submit(request?: Partial<SubmitRequest>): Promise<string>;
  after(...upstreams: (string | [string, DependencyPolicy])[]): Pick<SubmitRequest, 'dependsOn'>;
  claim(limit?: number): Promise<ClaimedJob[]>;
  /** Claims what is claimable until `id` came, and ends it. */
  finish(id: string, how?: 'complete' | 'fail'): Promise<void>;
  settle(job: ClaimedJob, how?: 'complete' | 'fail'): Promise<void>;
  state(id: string): Promise<JobState>;
  /** Waits until the job is in this state. */
  becomes(id: string, state: JobState): Promise<void>;
  row(id: string): Promise<Record<string, unknown>>;
  events(id: string): Promise<{ seq: number; type: string; state: string; data: Record<string, unknown> | null }[]>;
  followUps(): Promise<number>;
}

export async function dependencyBench(database: TestDatabase): Promise<DependencyBench> {
  const engine = createEngine({ database, channel: createMemoryChannel(), options: engineOptions() });
  const workerId = newUuid();
  await engine.execution.registerWorker({
    id: workerId,
    host: 'test',
    pid: 1,
    queues: null,
    tasks: [taskNamed('echo', { maxAttempts: 1 })],
    slots: 1_000,
    leaseMs: 3_600_000,
  });
  const claimed = new Map<string, ClaimedJob>();
  const bench: DependencyBench = {
    engine,
    database,
    submit: async (request = {}) => (await engine.jobs.submit(me, { task: 'echo', ...request })).jobId,
    after: (...upstreams) => ({
      dependsOn: upstreams.map((u) => (typeof u === 'string' ? { jobId: u } : { jobId: u[0], policy: u[1] })),
    }),
    async claim(limit = 100) {
      const jobs = await engine.execution.claim(workerId, { queues: null, tasks: ['echo'], limit });
      for (const job of jobs) claimed.set(job.id, job);
      return jobs;
    },
    async finish(id, how) {
      await eventually(async () => {
        if (!claimed.has(id)) await bench.claim();
        if (!claimed.has(id)) throw new Error(`job is ${await bench.state(id)}`);
      });
      const job = claimed.get(id) as ClaimedJob;
      claimed.delete(id);
      await bench.settle(job, how);
    },
    async settle(job, how = 'complete') {
      const { id: jobId, attempt } = job;
      const result = await engine.execution.settle(
        how === 'complete'
          ? { jobId, attempt, outcome: 'SUCCEEDED', result: JSON.stringify(jobId), resultDigest: jobId }
          : {
              jobId,
              attempt,
              outcome: 'FAILED',
              error: { code: 'BAD', message: 'disk full', retryable: false, attempt, at: new Date().toISOString() },
            },
      );
      if (result.status !== 'settled') throw new Error(`not settled: ${result.status}`);
    },
    state: async (id) => (await bench.row(id)).state as JobState,
    becomes: (id, state) =>
      eventually(async () => {
        const now = await bench.state(id);
        if (now !== state) throw new Error(`job is ${now}, not ${state}`);
      }),
    async row(id) {
      const [row] = await database.submit.query<Record<string, unknown>>(
        'select * from waymark.job_states where id = $1::uuid',
        [id],
      );
      return row as Record<string, unknown>;
    },
    events: (id) =>
      database.submit.query('select seq, type, state, data from waymark.events where job_id = $1::uuid order by seq', [
        id,
      ]),
    async followUps() {
      const [row] = await database.submit.query<{ n: number }>('select count(*)::int as n from waymark.followups');
      return row?.n ?? 0;
    },
  };
  return bench;
}
