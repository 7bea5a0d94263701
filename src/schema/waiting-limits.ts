import { formatDuration } from '../core/duration.ts';
import { toIso } from '../core/job.ts';
import type { QueuedReason } from '../db/reads/waiting.ts';
import type { WaitedFor } from './waited-for.ts';

/** One sentence on the limit that keeps a job of this queue in line. */
export function limitDetail(queue: string, reason: QueuedReason): string {
  const { maxRunning, rateLimitMax: max, rateLimitPerMs: perMs, nextStart } = reason;
  if (reason.kind === 'MAX_RUNNING') return `Queue ${queue} runs ${jobs(maxRunning)}, as many as it may.`;
  const next = nextStart === null ? '' : `; the next start is free at ${toIso(nextStart)}`;
  return `Queue ${queue} started ${jobs(max)} within ${formatDuration(perMs ?? 0)}, as many as it may${next}.`;
}

function jobs(n: number | null): string {
  return n === 1 ? '1 job' : `${n ?? 0} jobs`;
}

/** Those that run in the queue: when one of them ends, the next may start. */
export const holdersOfLimit: WaitedFor = {
  jobs: async (job, first, { loaders }) =>
    first === 0 ? [] : loaders.runningInQueue.load({ queue: job.queue, first }),
  count: (job, { loaders }) => loaders.runningInQueueCount.load(job.queue),
};
