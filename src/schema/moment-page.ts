import { type Connection, toConnection } from './connection.ts';
import { PAGE_SIZE } from './cost.ts';
import { badCursor, decodeCursor, encodeCursor, isMoment, isStoredId, type PageArgs, readPageArgs } from './paging.ts';

/** A place in a list by a moment; the id decides among equals. */
export interface MomentPosition {
  /** As Postgres prints it, or `infinity`. */
  at: string;
  id: string;
}

/** A window of such a list, in its order. */
export interface MomentWindow {
  after: MomentPosition | null;
  before: MomentPosition | null;
  fromEnd: boolean;
  limit: number;
}

/**
 * A page of a list that is ordered by a moment and the id.
 * @param of.list names list and order in the cursors, so that none is taken for that of another
 */
export async function momentPage<Row extends { id: string }>(
  args: PageArgs,
  of: {
    list: string;
    at: (row: Row) => string;
    read: (window: MomentWindow) => Promise<Row[]>;
    total: () => Promise<number | null>;
  },
): Promise<Connection<Row>> {
  const request = readPageArgs(args, PAGE_SIZE);
  const position = (argument: 'after' | 'before'): MomentPosition | null => {
    const cursor = request[argument];
    if (cursor === null) return null;
    const [list, at, id] = decodeCursor(cursor) ?? [];
    const isPlace = (isMoment(at) || at === 'infinity') && isStoredId(id);
    if (list !== of.list || !isPlace) throw badCursor(argument);
    return { at: at as string, id: id as string };
  };
  const [after, before] = [position('after'), position('before')];
  const rows = await of.read({ after, before, fromEnd: request.fromEnd, limit: request.limit + 1 });
  return toConnection(rows, request, {
    cursor: (row) => encodeCursor([of.list, of.at(row), row.id]),
    totalCount: of.total,
    // A cursor is the place of a row that was there; on the other side of it there is at least that row.
    otherSide: async () => (request.fromEnd ? before !== null : after !== null),
  });
}
