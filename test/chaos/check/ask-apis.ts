import { askUntilAnswered, type Client } from '../load/clients.ts';
import type { ErrorBook } from '../load/error-book.ts';
import type { Accepted } from '../load/job-carrier.ts';
import type { History } from './history.ts';

const PAGE = 100;
const NODES = 'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }';
const COUNTS = '{ jobCounts { state count } }';

/** Which accepted jobs an API does not find, and how many jobs each API counts. */
export async function askApis(
  clients: readonly Client[],
  accepted: readonly Accepted[],
  errors: ErrorBook,
): Promise<Pick<History, 'unresolved' | 'counted'>> {
  const unresolved: { id: string; api: number }[] = [];
  const counted: History['counted'][number][] = [];
  for (const [api, client] of clients.entries()) {
    const ask = <D>(query: string, variables: Record<string, unknown>) =>
      askUntilAnswered<D>([client], errors, { doing: 'read', query, variables });
    for (let i = 0; i < accepted.length; i += PAGE) {
      const ids = accepted.slice(i, i + PAGE).map(({ id }) => id);
      const { nodes } = await ask<{ nodes: ({ id: string } | null)[] }>(NODES, { ids });
      for (const [n, id] of ids.entries()) if (nodes[n]?.id !== id) unresolved.push({ id, api });
    }
    const { jobCounts } = await ask<{ jobCounts: Omit<History['counted'][number], 'api'>[] }>(COUNTS, {});
    counted.push(...jobCounts.map((count) => ({ ...count, api })));
  }
  return { unresolved, counted };
}
