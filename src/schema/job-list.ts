import { parseId } from '../core/ids.ts';
import { countJobs, totalJobs } from '../db/reads/job-counts.ts';
import {
  anyJob,
  JOB_ORDERS,
  type JobOrder,
  type JobPosition,
  type JobWindow,
  type ListedJob,
  listJobs,
} from '../db/reads/job-list.ts';
import { builder } from './builder.ts';
import { type Connection, connectionType, pageArgs, toConnection } from './connection.ts';
import type { SchemaContext } from './context.ts';
import { PAGE_SIZE } from './cost.ts';
import { JobOrderEnum } from './enums.ts';
import { JobFilterInput, toFilter } from './job-filter.ts';
import { badCursor, decodeCursor, encodeCursor, isMoment, isStoredId, type PageArgs, readPageArgs } from './paging.ts';
import { Job } from './refs.ts';
import { StateCount } from './state-count.ts';

export const JobConnection = connectionType('Job', Job, 'jobs');

function toCursor(order: JobOrder, { part, at, id }: JobPosition): string {
  return encodeCursor([order, part, at, id]);
}

function toPosition(order: JobOrder, cursor: string | null, argument: 'after' | 'before'): JobPosition | null {
  if (cursor === null) return null;
  const [of, part, at, id] = decodeCursor(cursor) ?? [];
  const ofThisList = of === order && JOB_ORDERS.includes(order) && (part === 0 || part === 1);
  if (!ofThisList || !isMoment(at) || !isStoredId(id)) throw badCursor(argument);
  return { part: part as number, at, id };
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

async function jobsPage(
  args: PageArgs & { filter?: typeof JobFilterInput.$inferInput | null; orderBy?: JobOrder | null },
  context: SchemaContext,
): Promise<Connection<typeof Job.$inferType>> {
  const { read, caller } = context;
  const order = args.orderBy ?? 'CREATED_DESC';
  const filter = toFilter(args.filter);
  const request = readPageArgs(args, PAGE_SIZE);
  const after = toPosition(order, request.after, 'after');
  const before = toPosition(order, request.before, 'before');
  const window: JobWindow = { filter, order, after, before, fromEnd: request.fromEnd, limit: request.limit + 1 };
  const listed = await listJobs(read, caller.tenant, window);
  const positions = new Map(listed.map((job) => [job.row, job.position]));
  for (const { row } of listed) context.loaders.job.prime(row.id, row);

  /** Whether the list has anything on the side that was not read, from the edge of what is shown. */
  async function otherSide(shown: readonly ListedJob['row'][]): Promise<boolean> {
    const { fromEnd } = request;
    const edge = shown[fromEnd ? shown.length - 1 : 0];
    let from = edge ? (positions.get(edge) ?? null) : null;
    if (!from) {
      // Nothing is shown: look from the bound, past all that lies at its very moment.
      const bound = fromEnd ? before : after;
      if (!bound) return false;
      const lastAscending = order.endsWith('_ASC') !== fromEnd;
      from = { ...bound, id: lastAscending ? LAST_ID : FIRST_ID };
    }
    const beyond = fromEnd ? { after: from, before: null } : { after: null, before: from };
    return anyJob(read, caller.tenant, { filter, order, ...beyond, fromEnd: !fromEnd });
  }

  return toConnection(
    listed.map((job) => job.row),
    request,
    {
      cursor: (row) => toCursor(order, positions.get(row) as JobPosition),
      totalCount: () => totalJobs(read, caller.tenant, filter),
      otherSide,
    },
  );
}

builder.queryFields((t) => ({
  job: t.field({
    type: Job,
    nullable: true,
    description: 'One job; null when the caller has none of this id.',
    args: { id: t.arg.id({ required: true, description: 'Its id (`job_…`).' }) },
    resolve: (_, { id }, context) => context.loaders.job.load(parseId('Job', id, 'id')),
  }),
  jobs: t.field({
    type: JobConnection,
    description: 'A list of jobs, page by page. A page neither repeats nor skips jobs that stay where they are.',
    args: {
      filter: t.arg({ type: JobFilterInput, description: 'Which; all when left out.' }),
      orderBy: t.arg({ type: JobOrderEnum, defaultValue: 'CREATED_DESC', description: 'In which order.' }),
      ...pageArgs(),
    },
    resolve: (_, args, context) => jobsPage(args, context),
  }),
  jobCounts: t.field({
    type: [StateCount],
    description:
      'Jobs per state, all nine. Exact and without reading jobs when the filter names only states, tasks and queues; else finished states are counted to 10,000.',
    args: { filter: t.arg({ type: JobFilterInput, description: 'Which; all when left out.' }) },
    resolve: (_, { filter }, context) => countJobs(context.read, context.caller.tenant, toFilter(filter)),
  }),
}));
