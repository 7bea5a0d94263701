import { parseId } from '../core/ids.ts';
import { jsonDigest } from '../core/json.ts';
import type { JobsChanged as JobsChangedMessage } from '../engine/live/types.ts';
import { builder } from './builder.ts';
import { sharedLoaders } from './context.ts';
import { JobEvent } from './event.ts';
import { readInterval } from './interval.ts';
import { JobFilterInput, toFilter } from './job-filter.ts';
import { liveFilter } from './live-filter.ts';
import { badInput } from './paging.ts';
import { Job } from './refs.ts';

const JobsChanged = builder.objectRef<JobsChangedMessage>('JobsChanged').implement({
  description: 'What a list has to know.',
  fields: (t) => ({
    jobs: t.field({
      type: [Job],
      description: 'Jobs that changed and matched before or match now, each once, as they are now.',
      resolve: (m) => m.jobs,
    }),
    reset: t.exposeBoolean('reset', {
      description:
        'Changes may have been missed: (re)read the list now. True in the first message; `jobs` is empty then.',
    }),
  }),
});

const untilTerminal = 'False keeps the stream open over later runs.';

builder.subscriptionFields((t) => ({
  jobEvents: t.field({
    type: JobEvent,
    description:
      'Facts of a job behind `after`, in order, each once; completes after the terminal one of the current run. Errors: NOT_FOUND (unknown, or removed in mid-stream), CURSOR_INVALID (`after` is beyond the newest), LIMIT_EXCEEDED.',
    args: {
      id: t.arg.id({ required: true, description: 'The job.' }),
      after: t.arg.int({
        defaultValue: 0,
        description: '`seq` of the last fact that you have; 0: from the beginning.',
      }),
      untilTerminal: t.arg.boolean({ defaultValue: true, description: untilTerminal }),
    },
    subscribe: (_, args, { live, caller }) => {
      const after = args.after ?? 0;
      if (after < 0) throw badInput('after', `must be 0 or more, not ${after}`);
      return live.jobEvents(caller, parseId('Job', args.id, 'id'), {
        after,
        untilTerminal: args.untilTerminal ?? true,
      });
    },
    resolve: (event, _, context) => {
      sharedLoaders(context, event);
      return event;
    },
  }),
  jobProgress: t.field({
    type: Job,
    description:
      'The job as it is now, then the newest each time it changed, fact or progress: may skip, never goes back. The last value is the terminal one. Errors: NOT_FOUND, LIMIT_EXCEEDED.',
    args: {
      id: t.arg.id({ required: true, description: 'The job.' }),
      untilTerminal: t.arg.boolean({ defaultValue: true, description: untilTerminal }),
    },
    subscribe: (_, args, { live, caller }) =>
      live.jobProgress(caller, parseId('Job', args.id, 'id'), {
        untilTerminal: args.untilTerminal ?? true,
      }),
    resolve: (job, _, context) => {
      sharedLoaders(context, job);
      return job;
    },
  }),
  jobsChanged: t.field({
    type: JobsChanged,
    description:
      'For lists. First message at once: `reset`, (re)read your list; again whenever changes may have been missed. Then at most one message an interval with every job that changed and matched before or matches now.',
    args: {
      filter: t.arg({ type: JobFilterInput, description: 'Which jobs; all when left out.' }),
      minInterval: t.arg({
        type: 'Duration',
        defaultValue: 250,
        description: 'Shortest time between two messages, 50ms to 1h.',
      }),
    },
    subscribe: (_, args, { live, caller }) => {
      const minIntervalMs = readInterval(args.minInterval);
      return live.jobsChanged(caller, {
        filter: liveFilter(toFilter(args.filter)),
        filterKey: jsonDigest(args.filter ?? null),
        minIntervalMs,
      });
    },
    resolve: (message, _, context) => {
      sharedLoaders(context, message);
      return message;
    },
  }),
}));
