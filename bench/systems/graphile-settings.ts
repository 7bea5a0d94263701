import { Logger } from 'graphile-worker';

/** It logs every job; here as there nobody reads that. */
export const quiet = new Logger(() => () => {});

/** The best of the settings tried for each purpose (README.md says which). */
export const WORKER = {
  throughput: {
    concurrentJobs: 50,
    maxPoolSize: 12,
    localQueue: { size: 1000 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
  latency: { concurrentJobs: 10, maxPoolSize: 12 },
};
