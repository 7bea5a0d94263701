import { claim } from '../../src/db/transitions/claim.ts';
import type { Executor, SqlParam, Tx } from '../../src/db/types.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { TestDatabase } from '../support/database.ts';
import { insertWorker, me, taskNamed } from '../support/factory.ts';

const TASK = 'flow';
const definition = taskNamed(TASK);
const REQUEST = { queues: null, tasks: [TASK], limit: 10 };

/** Lets jobs flow through a store, and measures what it costs to take some. */
export interface ClaimProbe {
  /** Two workers submit, claim and settle for so long. Returns how many jobs they carried. */
  flow(forMs: number): Promise<number>;
  /** The median of the time that one claim of ten jobs takes when ten wait; for people to read. */
  medianMs(): Promise<number>;
  /** How many pages one claim looks at to find ten jobs that wait, and the nodes of its plan that do. */
  look(): Promise<{ pages: number; plan: string }>;
}

export async function claimProbe(engine: Engine, database: TestDatabase): Promise<ClaimProbe> {
  const workers = [await insertWorker(database.work), await insertWorker(database.work)];
  const [first] = workers as [string, string];
  await engine.execution.registerTasks([definition]);

  const submit = (count: number) =>
    engine.jobs.submitMany(
      me,
      Array.from({ length: count }, () => ({ task: TASK, input: 1 })),
    );
  const settle = (jobs: readonly { id: string; attempt: number }[]) =>
    Promise.all(
      jobs.map(({ id, attempt }) =>
        engine.execution.settle({ jobId: id, attempt, outcome: 'SUCCEEDED', result: '1', resultDigest: 'd' }),
      ),
    );

  return {
    async flow(forMs) {
      const until = performance.now() + forMs;
      let carried = 0;
      await Promise.all(
        workers.map(async (worker) => {
          while (performance.now() < until) {
            await submit(25);
            const jobs = await engine.execution.claim(worker, { ...REQUEST, limit: 25 });
            await settle(jobs);
            carried += jobs.length;
          }
        }),
      );
      for (let left = 1; left > 0; ) {
        const jobs = await engine.execution.claim(first, { ...REQUEST, limit: 100 });
        await settle(jobs);
        left = jobs.length;
      }
      return carried;
    },

    async medianMs() {
      const times: number[] = [];
      for (let i = 0; i < 41; i++) {
        await submit(REQUEST.limit);
        const since = performance.now();
        const jobs = await engine.execution.claim(first, REQUEST);
        times.push(performance.now() - since);
        if (jobs.length !== REQUEST.limit) throw new Error(`${jobs.length} jobs were claimed`);
        await settle(jobs);
      }
      return times.sort((a, b) => a - b)[times.length >> 1] as number;
    },

    async look() {
      const jobs = await submit(REQUEST.limit);
      const plans: string[] = [];
      const explained = database.work.transaction(async (tx) => {
        await claim(explaining(tx, plans), first, REQUEST);
        throw new Undone();
      });
      await explained.catch((error) => {
        if (!(error instanceof Undone)) throw error;
      });
      await Promise.all(jobs.map(({ jobId }) => engine.jobs.cancel(me, jobId)));
      const plan = plans.join();
      const [, hit = 0, read = 0] = /Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?/.exec(plan) ?? [];
      return { pages: Number(hit) + Number(read), plan };
    },
  };
}

/** Rolls back the claim that was explained. */
class Undone extends Error {}

function explaining(tx: Tx, plans: string[]): Executor {
  return {
    async query<Row>(text: string, params: readonly SqlParam[] = []): Promise<Row[]> {
      const rows = await tx.query<Record<string, string>>(`explain (analyze, buffers) ${text}`, params);
      const lines = rows.map((row) => row['QUERY PLAN'] ?? '');
      const at = lines.findIndex((line) => line.includes('using job_states_claim'));
      plans.push(lines.slice(at, at + 5).join('\n'));
      return [];
    },
  };
}
