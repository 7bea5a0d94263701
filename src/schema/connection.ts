import type { ObjectRef } from '@pothos/core';
import { builder } from './builder.ts';
import { PAGE_SIZE } from './cost.ts';
import type { PageRequest } from './paging.ts';

type Lazy<T> = () => Promise<T>;

/** A page of a list. What costs a read of its own is read only when it is selected. */
export interface Connection<T> {
  edges: { cursor: string; node: T }[];
  hasNextPage: Lazy<boolean>;
  hasPreviousPage: Lazy<boolean>;
  totalCount: Lazy<number | null>;
}

/**
 * Makes a page of rows that were read with a limit of one more than wanted: the one too many says whether the list goes
 * on where the reading stopped.
 * @param rows in the list's order
 */
export function toConnection<T>(
  rows: readonly T[],
  page: PageRequest,
  of: {
    cursor: (row: T) => string;
    totalCount: Lazy<number | null>;
    /** Whether anything lies on the side that was not read: behind the last row shown, or (`false`) before the first. */
    otherSide: (shown: readonly T[]) => Promise<boolean>;
  },
): Connection<T> {
  const more = rows.length > page.limit;
  const shown = !more ? rows : page.fromEnd ? rows.slice(-page.limit || rows.length) : rows.slice(0, page.limit);
  const readSide = async () => more;
  const other = () => of.otherSide(shown);
  return {
    edges: shown.map((node) => ({ cursor: of.cursor(node), node })),
    hasNextPage: page.fromEnd ? other : readSide,
    hasPreviousPage: page.fromEnd ? readSide : other,
    totalCount: of.totalCount,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the page's item type does not matter here
const PageInfo = builder.objectRef<Connection<any>>('PageInfo').implement({
  description: 'Where a page lies in its list.',
  fields: (t) => ({
    hasNextPage: t.boolean({
      description: 'Whether the list goes on behind this page.',
      resolve: (page) => page.hasNextPage(),
    }),
    hasPreviousPage: t.boolean({
      description: 'Whether the list has anything before this page.',
      resolve: (page) => page.hasPreviousPage(),
    }),
    startCursor: t.string({
      nullable: true,
      description: 'Cursor of the first item, null on an empty page. Hand it to `before`.',
      resolve: (page) => page.edges[0]?.cursor ?? null,
    }),
    endCursor: t.string({
      nullable: true,
      description: 'Cursor of the last item, null on an empty page. Hand it to `after`.',
      resolve: (page) => page.edges.at(-1)?.cursor ?? null,
    }),
  }),
});

/** Defines `<name>Connection` and its edges over a type. */
export function connectionType<T>(
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: Pothos's ref carries the whole builder in its first parameter
  node: ObjectRef<any, T, any>,
  things: string,
  edgeName = `${name}Edge`,
) {
  const edge = builder.objectRef<{ cursor: string; node: T }>(edgeName).implement({
    description: `One of the ${things} of a page, with its place.`,
    fields: (t) => ({
      cursor: t.exposeString('cursor', {
        description: 'Its place in the list: opaque, good for `after` and `before`.',
      }),
      // biome-ignore lint/suspicious/noExplicitAny: as above; what is resolved is the ref's own T
      node: t.field({ type: node, description: 'The item itself.', resolve: (e) => e.node as any }),
    }),
  });
  return builder.objectRef<Connection<T>>(`${name}Connection`).implement({
    description: `A page of ${things}.`,
    fields: (t) => ({
      edges: t.field({ type: [edge], description: 'Items with their cursors.', resolve: (page) => page.edges }),
      nodes: t.field({
        type: [node],
        description: 'Items alone.',
        // biome-ignore lint/suspicious/noExplicitAny: as above
        resolve: (page) => page.edges.map((e) => e.node) as any,
      }),
      pageInfo: t.field({ type: PageInfo, description: 'Where the page lies.', resolve: (page) => page }),
      totalCount: t.int({
        nullable: true,
        description: 'How many items the whole list has; null beyond 10,000. Counted only when it is selected.',
        resolve: (page) => page.totalCount(),
      }),
    }),
  });
}

/** The arguments of every connection. */
export function pageArgs() {
  const { default: usual, max } = PAGE_SIZE;
  return builder.args((t) => ({
    first: t.int({ description: `Items from the front, at most ${max}. Default ${usual}, unless \`last\` is given.` }),
    after: t.string({ description: 'Only items behind this cursor.' }),
    last: t.int({
      description: `Items from the end, at most ${max}, in the list’s order all the same. Not together with \`first\`.`,
    }),
    before: t.string({ description: 'Only items before this cursor.' }),
  }));
}
