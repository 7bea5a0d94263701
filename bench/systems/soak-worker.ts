import { createWaymark, defineTask } from './built.ts';

/** What a job of the soak is given: when its submit was called, in nanoseconds of the machine's monotonic clock. */
export interface SoakInput {
  at: string;
}

/** The waits of the jobs that began since the last sample, in milliseconds. */
export type SoakSample = number[];

const [databaseUrl = '', redisUrl = ''] = process.argv.slice(2);
let waits: SoakSample = [];
const task = defineTask({
  name: 'soak',
  run: async (_ctx, input) => {
    waits.push(Number(process.hrtime.bigint() - BigInt((input as unknown as SoakInput).at)) / 1e6);
  },
});
const service = await createWaymark({ databaseUrl, redisUrl });
await service.worker({ tasks: [task], concurrency: 500 }).start();
process.on('message', () => {
  process.send?.(waits);
  waits = [];
});
process.on('disconnect', () => void service.close().finally(() => process.exit(0)));
process.send?.('ready');
