import { expect } from 'vitest';
import type { HttpProxy } from '../client/proxy.ts';
import type { HandWorker } from '../server/hand-worker.ts';
import type { Service } from '../server/service.ts';
import { eventually } from '../support/eventually.ts';
import { seededRandom } from '../support/random.ts';

/** Submits a job with a tag and starts it: two facts of its own, and then those that are saved. */
export async function runningJob(service: Service, worker: HandWorker, tags: string[] = []) {
  const submit = `mutation ($tags: [String!]) {
    submitJob(input: { task: "echo", tags: $tags }) { ... on SubmitJobPayload { job { id } } }
  }`;
  const id: string = (await service.post(submit, { tags })).data.submitJob.job.id;
  const { id: jobId, attempt, epoch } = await worker.start(id);
  let seq = 2;
  return {
    id,
    /** `seq` of its last fact. */
    seq: () => seq,
    async save(n: number) {
      for (let i = 0; i < n; i++) {
        const checkpoint = { key: `k${seq}`, kind: 'STEP', data: '1' } as const;
        await service.engine.execution.saveCheckpoint({ jobId, attempt, epoch, ...checkpoint });
        seq++;
      }
    },
  };
}

/** Saves 200 facts and more, and cuts every connection in the middle of them, again and again. */
export async function saveOverBreaks(
  job: { save(n: number): Promise<void>; seq(): number },
  proxy: HttpProxy,
  /** How far the reader is. */
  received: () => number,
): Promise<void> {
  const random = seededRandom();
  const below = (n: number) => Math.floor(random() * n);
  // A connection that is cut before it stands is none: so many must have been.
  const tooFew = () => proxy.seen.upgrades + proxy.seen.streams < 5;
  for (let breaks = 0; breaks < 6 || job.seq() < 220 || (tooFew() && breaks < 50); breaks++) {
    await job.save(below(40));
    proxy.cut();
    await job.save(1 + below(20));
    // As often as not a break comes while the one before is not yet over.
    const next = Math.min(received() + 1 + below(job.seq()), job.seq());
    if (below(2)) await eventually(() => expect(received()).toBeGreaterThanOrEqual(next), { timeoutMs: 30_000 });
  }
}
