import { defineTask } from './built.ts';

/** Slots of the worker: the best of those tried for each purpose. */
export const CONCURRENCY = { throughput: 500, latency: 10 };

/** The task of all benchmarks; `handler` only counts. */
export const noop = (handler: () => void) =>
  defineTask({
    name: 'noop',
    run: async () => {
      handler();
    },
  });
