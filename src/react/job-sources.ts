import { type Job, type JobEvent, RequestError } from '../client/index.ts';
import { readInsistently } from './reading.ts';
import type { Source } from './shared-streams.ts';

/** Two renders of a page that shows events are at least this far apart. */
const FRAME_MS = 16;

/** The job with its progress, over all of its runs. */
export function progressSource(id: string): Source<Job> {
  return {
    key: `progress ${id}`,
    async run(out, { client, signal }) {
      for await (const job of client.job(id).progress({ signal, untilTerminal: false })) out.set(job);
    },
  };
}

/** The same with input, result and what it waits for, which are read when the state changes: they are not in the stream. */
export function jobSource(id: string): Source<Job> {
  const progress = progressSource(id);
  return {
    key: `job ${id}`,
    run: (out, { client, streams, signal }) =>
      new Promise((_, reject) => {
        let details: Job | undefined;
        let isReading = false;

        async function read(): Promise<void> {
          isReading = true;
          const job = await readInsistently(() => client.job(id).get({ signal }), signal);
          isReading = false;
          if (!job) throw new RequestError('NOT_FOUND', `job ${id} was not found`);
          details = job;
          if (!out.data || job.version >= out.data.version) out.set(job);
          update();
        }

        function update(): void {
          const { data: now, error } = streams.snapshot(progress);
          if (error) reject(error);
          if (error || !now || isReading || now.version <= (details?.version ?? -1)) return;
          // Shown only together with what belongs to it: COMPLETED never comes without its result.
          if (!details || !isSameStage(details, now)) read().catch(reject);
          else if (now.version > (out.data?.version ?? -1)) out.set({ ...details, ...now });
        }

        const stop = streams.subscribe(progress, update);
        signal.addEventListener('abort', stop, { once: true });
        update();
      }),
  };
}

/** Whether result and waits are still those of `details`. */
function isSameStage(details: Job, now: Job): boolean {
  const same = details.state === now.state && details.run === now.run && details.attemptNumber === now.attemptNumber;
  return same && (now.state === 'RUNNING' || now.isTerminal || details.lastSeq === now.lastSeq);
}

/** All facts behind `after`, in order, over all runs. */
export function eventsSource(id: string, after: number): Source<readonly JobEvent[]> {
  return {
    key: `events ${id} ${after}`,
    async run(out, { client, signal }) {
      // Behind the last fact there may be nothing for a long time.
      if (after > 0 && !out.data) out.set([]);
      const from = out.data?.at(-1)?.seq ?? after;
      let fresh: JobEvent[] = [];
      const show = () => {
        if (fresh.length > 0) out.set([...(out.data ?? []), ...fresh]);
        fresh = [];
      };
      try {
        for await (const event of client.job(id).events({ after: from, signal, untilTerminal: false })) {
          if (fresh.push(event) === 1) setTimeout(show, FRAME_MS);
        }
      } finally {
        show();
      }
    },
  };
}
