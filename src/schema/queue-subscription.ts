import { builder } from './builder.ts';
import { freshLoaders } from './context.ts';
import { readInterval } from './interval.ts';
import { Queue } from './queue.ts';

/** Overviews need no more. */
const DEFAULT_INTERVAL_MS = 1_000;

builder.subscriptionField('queuesChanged', (t) =>
  t.field({
    type: [Queue],
    description:
      'All queues with their counts: at once, then whenever something about them differs, at most once an interval. May skip, never goes back. Errors: LIMIT_EXCEEDED.',
    args: {
      minInterval: t.arg({
        type: 'Duration',
        defaultValue: DEFAULT_INTERVAL_MS,
        description: 'Shortest time between two messages, 50ms to 1h.',
      }),
    },
    subscribe: (_, { minInterval }, { live, caller }) =>
      live.queuesChanged(caller, { minIntervalMs: readInterval(minInterval ?? DEFAULT_INTERVAL_MS) }),
    resolve: (queues, _, context) => {
      freshLoaders(context);
      return queues;
    },
  }),
);
