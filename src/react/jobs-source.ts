import type { Job, JobFilter } from '../client/index.ts';
import { newer, oneAtATime, readInsistently } from './reading.ts';
import type { Source } from './shared-streams.ts';

export interface JobsOptions {
  /** Page size. Default 50, at most 200. */
  first?: number;
  /** Default: the newest first. */
  orderBy?: 'CREATED_DESC' | 'CREATED_ASC' | 'UPDATED_DESC' | 'RUN_AT_ASC' | 'FINISHED_DESC';
  /** Shortest time between two updates. Default `"250ms"`. */
  minInterval?: string;
}

/** The first page of a list: progress is put in as it comes; the page is read again when other jobs may belong to it. */
export function jobsSource(
  key: string,
  filter: JobFilter,
  { minInterval, ...page }: JobsOptions,
): Source<readonly Job[]> {
  return {
    key: `jobs ${key}`,
    async run(out, { client, signal }) {
      /** What changes said while a page was being read. */
      const heard = new Map<string, Job>();

      const reading = oneAtATime(async () => {
        heard.clear();
        const { jobs } = await readInsistently(() => client.jobs(filter, page), signal);
        const known = new Map(out.data?.map((job) => [job.id, job]));
        show(jobs.map((job) => newer(keepState(job, newer(job, heard.get(job.id))), known.get(job.id))));
      });

      function show(jobs: readonly Job[]): void {
        const shown = out.data;
        if (
          shown?.length !== jobs.length ||
          jobs.some((job, i) => job.id !== shown[i]?.id || job.version !== shown[i]?.version)
        )
          out.set(jobs);
      }

      function merge(changed: readonly Job[]): void {
        const changes = new Map(changed.map((job) => [job.id, job]));
        for (const job of changed) heard.set(job.id, newer(job, heard.get(job.id)));
        const shown = out.data ?? [];
        const states = new Map(shown.map((job) => [job.id, job.state]));
        // A job that is new here, or in another state, may belong to the page, or no longer; its place may be another.
        if (changed.some((job) => states.get(job.id) !== job.state)) reading.again();
        show(shown.map((job) => keepState(job, newer(job, changes.get(job.id)))));
      }

      const watching = (async () => {
        for await (const { jobs, reset } of client.watch(filter, { minInterval, signal })) {
          if (reset || !out.data) reading.again();
          else merge(jobs);
        }
      })();
      await Promise.race([watching, reading.failed]);
    },
  };
}

/** A list of RUNNING jobs shows no other ones, not even for the moment until the page is read again. */
function keepState(shown: Job, now: Job): Job {
  return now.state === shown.state ? now : shown;
}
