export const NOOP = 'noop';

/** The best of the settings tried for each purpose (README.md says which). */
export const WORK = {
  throughput: { batchSize: 500, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
  latency: { batchSize: 10, localConcurrency: 1 },
};
