import type { JobRow } from '../core/job.ts';
import type { WaitedForRow } from '../db/reads/waited-for.ts';
import type { SchemaContext } from './context.ts';
import type { WaitedFor } from './waited-for.ts';

/** The jobs that a DEFERRED job waits for, and the one that has the concurrency key of a QUEUED one. */

type EdgeKind = WaitedForRow['kind'];

async function counts(job: JobRow, kind: EdgeKind, { loaders }: SchemaContext) {
  const found = (await loaders.openCounts.load(job.id)).find((row) => row.kind === kind);
  return { open: found?.open ?? 0, total: found?.total ?? 0 };
}

/** One sentence on how many of its upstream jobs a job waits for. */
export async function dependenciesDetail(job: JobRow, context: SchemaContext): Promise<string> {
  const { open, total } = await counts(job, 'DEPENDENCY', context);
  if (open === 0) return 'All jobs that it depends on have ended; it goes on in a moment.';
  return total === 1
    ? 'Waits for the job that it depends on.'
    : `Waits for ${open} of ${total} jobs that it depends on.`;
}

/** The same of the jobs that it started. */
export async function childrenDetail(job: JobRow, context: SchemaContext): Promise<string> {
  const { open, total } = await counts(job, 'CHILD', context);
  if (open === 0) return 'All jobs that it started have ended; it goes on in a moment.';
  return total === 1 ? 'Waits for the job that it started.' : `Waits for ${open} of ${total} jobs that it started.`;
}

/** Those that are not finished, in the order in which they were given. */
export function unfinished(kind: EdgeKind): WaitedFor {
  return {
    async jobs(job, first, { loaders }) {
      if (first === 0) return [];
      const rows = (await loaders.openUpstreams(job.id, { first })).filter((row) => row.kind === kind);
      return there(await Promise.all(rows.map(({ upstream }) => loaders.job.load(upstream))));
    },
    count: async (job, context) => (await counts(job, kind, context)).open,
  };
}

async function headOf(job: JobRow, { loaders }: SchemaContext): Promise<JobRow | null> {
  const id = job.concurrencyKey === null ? null : await loaders.headOfKey.load(job.concurrencyKey);
  return id === null || id === job.id ? null : loaders.job.load(id);
}

/** The one with the same key that goes first. */
export const headOfKey: WaitedFor = {
  jobs: async (job, first, context) => (first === 0 ? [] : there([await headOf(job, context)])),
  count: async (job, context) => ((await headOf(job, context)) === null ? 0 : 1),
};

function there(jobs: readonly (JobRow | null)[]): JobRow[] {
  return jobs.filter((job) => job !== null);
}
