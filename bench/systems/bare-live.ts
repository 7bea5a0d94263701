import type { ToBareServer } from '../lib/live-protocol.ts';
import { ServerProcess } from '../lib/server-process.ts';
import type { LiveSystem } from './live-system.ts';

/** A server that keeps nothing and fans out from memory. */
export function bareLive(jobs: number): LiveSystem {
  return {
    name: 'bare graphql-yoga + graphql-ws',
    setting: 'the same payload from memory, through a Repeater a subscriber as createPubSub makes them',
    async start() {
      const server = await ServerProcess.start<ToBareServer>(new URL('./bare-live-server.ts', import.meta.url), []);
      return {
        server,
        // As long as one of Waymark's ids.
        jobs: Array.from({ length: jobs }, (_, n) => ({ id: `job_${String(n).padStart(26, '0')}`, lastSeq: 1 })),
        async publishEvents(of, each) {
          for (const job of of) job.lastSeq += each;
          server.send({ kind: 'publishEvents', jobIds: of.map((job) => job.id), each });
        },
        publishJobs: async (count) => server.send({ kind: 'publishJobs', count }),
      };
    },
  };
}
