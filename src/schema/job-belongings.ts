import type { AttemptRow, CheckpointRow, JobRow } from '../core/job.ts';
import type { BelongingsWindow } from '../db/reads/belongings.ts';
import type { LogRow } from '../db/reads/logs.ts';
import { type Connection, toConnection } from './connection.ts';
import type { SchemaContext } from './context.ts';
import { EVENTS_SIZE, PAGE_SIZE } from './cost.ts';
import type { EventPage } from './event.ts';
import { badCursor, badInput, decodeCursor, encodeCursor, isStoredId, type PageArgs, readPageArgs } from './paging.ts';

/** Pages of what belongs to one job; for a list of jobs the loaders make one statement of them. */
export async function page<Row, Key extends string | number>(
  args: PageArgs,
  of: {
    list: string;
    isKey: (value: unknown) => value is Key;
    key: (row: Row) => Key;
    load: (window: BelongingsWindow<Key>) => Promise<Row[]>;
    count: () => Promise<number>;
  },
): Promise<Connection<Row>> {
  const request = readPageArgs(args, PAGE_SIZE);
  const bound = (argument: 'after' | 'before'): Key | null => {
    const cursor = request[argument];
    if (cursor === null) return null;
    const [list, key] = decodeCursor(cursor) ?? [];
    if (list !== of.list || !of.isKey(key)) throw badCursor(argument);
    return key;
  };
  const [after, before] = [bound('after'), bound('before')];
  const rows = await of.load({ after, before, fromEnd: request.fromEnd, limit: request.limit + 1 });
  return toConnection(rows, request, {
    cursor: (row) => encodeCursor([of.list, of.key(row)]),
    // As in the list of jobs: the exact number is no use beyond this, and not worth its price.
    totalCount: async () => {
      const n = await of.count();
      return n > 10_000 ? null : n;
    },
    // A cursor is the place of a row that was there; on the other side of it there is at least that row.
    otherSide: async () => (request.fromEnd ? before !== null : after !== null),
  });
}

const isNumber = (value: unknown): value is number => Number.isInteger(value) && Math.abs(value as number) < 2 ** 31;

export function attemptsPage(job: JobRow, args: PageArgs, { loaders }: SchemaContext): Promise<Connection<AttemptRow>> {
  return page(args, {
    list: 'attempts',
    isKey: isNumber,
    key: (row: AttemptRow) => row.number,
    load: (window) => loaders.attempts(job.id, window),
    count: () => loaders.attemptCount.load(job.id),
  });
}

export function checkpointsPage(
  job: JobRow,
  args: PageArgs,
  { loaders }: SchemaContext,
): Promise<Connection<CheckpointRow>> {
  return page(args, {
    list: 'checkpoints',
    isKey: isNumber,
    key: (row: CheckpointRow) => row.sequence,
    load: (window) => loaders.checkpoints(job.id, window),
    count: () => loaders.checkpointCount.load(job.id),
  });
}

export function logsPage(job: JobRow, args: PageArgs, { loaders }: SchemaContext): Promise<Connection<LogRow>> {
  return page(args, {
    list: 'logs',
    isKey: isStoredId,
    key: (row: LogRow) => row.id,
    load: (window) => loaders.logs(job.id, window),
    count: () => loaders.logCount.load(job.id),
  });
}

/** A page of facts. `last` wins over `first`, which has a default and so is always there. */
export async function eventsPage(
  job: JobRow,
  args: { after?: number | null; first?: number | null; last?: number | null },
  { loaders }: SchemaContext,
): Promise<EventPage> {
  const after = args.after ?? 0;
  if (after < 0) throw badInput('after', `must be 0 or more, not ${after}`);
  const { limit, fromEnd } = readPageArgs(args.last == null ? { first: args.first } : { last: args.last }, EVENTS_SIZE);
  const nodes = limit === 0 ? [] : await loaders.events(job.id, { after, limit, fromEnd });
  const endSeq = nodes.at(-1)?.seq ?? after;
  // The job was read a moment before its events.
  return { nodes, endSeq, lastSeq: nodes.length > 0 ? Math.max(job.lastSeq, endSeq) : job.lastSeq };
}
