import { defineTask } from './built.ts';
import type { SteppedInput } from './system.ts';

/** Slots of the worker: the best of those tried for each purpose. */
export const CONCURRENCY = { throughput: 500, latency: 10 };

/** A job that does nothing; `handler` only counts. */
export const noop = (handler: () => void) =>
  defineTask({
    name: 'noop',
    run: async () => {
      handler();
    },
  });

/** A job of as many durable steps as its input says. */
export const stepped = (handler: () => void) =>
  defineTask({
    name: 'stepped',
    run: async (ctx, input) => {
      handler();
      const { steps } = input as SteppedInput;
      for (let i = 0; i < steps; i++) await ctx.step(`s${i}`, async () => i);
    },
  });
