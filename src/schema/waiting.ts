import { type JobRow, type Timestamp, toIso } from '../core/job.ts';
import { builder } from './builder.ts';
import type { SchemaContext } from './context.ts';
import { type WaitingKind, WaitingKindEnum } from './enums.ts';
import { badInput } from './paging.ts';
import { Job } from './refs.ts';
import { firstExpiry, openApprovals, reviewDetail } from './reviews.ts';
import type { WaitedFor } from './waited-for.ts';
import { childrenDetail, dependenciesDetail, headOfKey, unfinished } from './waiting-jobs.ts';
import { holdersOfLimit, limitDetail } from './waiting-limits.ts';

/** Why a job is not running. */
export interface Waiting {
  job: JobRow;
  kind: WaitingKind;
  detail: string;
  until: Timestamp | null;
}

/**
 * Why a job is not running, or null while it runs or has ended. Only jobs in line and those that wait for others need to
 * be looked up.
 */
export async function waitingOn(job: JobRow, context: SchemaContext): Promise<Waiting | null> {
  const because = (kind: WaitingKind, detail: string, until: Timestamp | null = null) => ({ job, kind, detail, until });
  switch (job.state) {
    case 'SCHEDULED':
      if (job.waitingKind === 'SLEEP') return because('SLEEP', `Sleeps until ${toIso(job.runAt)}.`, job.runAt);
      return because('DUE_TIME', `Its time comes at ${toIso(job.runAt)}.`, job.runAt);
    case 'RETRYING': {
      const left = job.maxAttempts - job.failures;
      const detail = `The next attempt comes at ${toIso(job.runAt)}; ${left} of ${job.maxAttempts} are left.`;
      return because('RETRY_DELAY', detail, job.runAt);
    }
    case 'DEFERRED':
      return job.waitingKind === 'CHILDREN'
        ? because('CHILDREN', await childrenDetail(job, context))
        : because('DEPENDENCIES', await dependenciesDetail(job, context));
    case 'WAITING_FOR_REVIEW': {
      const open = await openApprovals(job, context);
      return because('REVIEW', reviewDetail(open), firstExpiry(open));
    }
    case 'QUEUED':
      return inLine(job, context, because);
    default:
      return null;
  }
}

async function inLine(
  job: JobRow,
  context: SchemaContext,
  because: (kind: WaitingKind, detail: string, until?: Timestamp | null) => Waiting,
): Promise<Waiting> {
  const reason = await context.loaders.queuedReason.load(job.id);
  if (reason?.kind === 'MAX_RUNNING' || reason?.kind === 'RATE_LIMIT') {
    return because(reason.kind, limitDetail(job.queue, reason), reason.kind === 'RATE_LIMIT' ? reason.nextStart : null);
  }
  switch (reason?.kind) {
    case 'QUEUE_PAUSED': {
      const by = reason.pausedBy ? ` by ${reason.pausedBy}` : '';
      const why = reason.pauseReason ? `: ${reason.pauseReason}` : '.';
      return because('QUEUE_PAUSED', `Queue ${job.queue} was paused${by}${why}`);
    }
    case 'NO_WORKER':
      return because('NO_WORKER', `No live worker takes ${job.task} from queue ${job.queue}.`);
    case 'CONCURRENCY_KEY':
      return because('CONCURRENCY_KEY', `Another job with the key ${job.concurrencyKey ?? ''} goes first.`);
    default:
      return because('CAPACITY', 'It is in line for a free slot of a worker.');
  }
}

/** Kinds of waiting that other jobs bring about. */
const WAITED_FOR: Partial<Record<WaitingKind, WaitedFor>> = {
  DEPENDENCIES: unfinished('DEPENDENCY'),
  CHILDREN: unfinished('CHILD'),
  MAX_RUNNING: holdersOfLimit,
  CONCURRENCY_KEY: headOfKey,
};

export const WaitingOn = builder.objectRef<Waiting>('WaitingOn').implement({
  description: 'Why a job is not running now.',
  fields: (t) => ({
    kind: t.field({ type: WaitingKindEnum, description: 'For programs.', resolve: (w) => w.kind }),
    detail: t.exposeString('detail', { description: 'One readable sentence.' }),
    until: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the waiting ends by itself, where a time is known.',
      resolve: (w) => w.until,
    }),
    jobs: t.field({
      type: [Job],
      description:
        'Unfinished dependencies or children, the jobs that hold the limit, or the one that has the concurrency key. Empty for other kinds.',
      args: { first: t.arg.int({ defaultValue: 10, description: 'At most so many, from 0 to 100.' }) },
      resolve: async (w, { first }, context) => {
        if (first != null && (first < 0 || first > 100)) throw badInput('first', `must be from 0 to 100, not ${first}`);
        return [...((await WAITED_FOR[w.kind]?.jobs(w.job, first ?? 10, context)) ?? [])];
      },
    }),
    jobCount: t.int({
      description: 'How many such jobs there are in all.',
      resolve: async (w, _, context) => (await WAITED_FOR[w.kind]?.count(w.job, context)) ?? 0,
    }),
    ahead: t.int({
      nullable: true,
      description: 'QUEUED: jobs before it in line, counted to 1,000. Null in other states.',
      resolve: (w, _, context) => (w.job.state === 'QUEUED' ? context.loaders.ahead.load(w.job.id) : null),
    }),
  }),
});
