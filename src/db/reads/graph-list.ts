import { type GraphRow, ROLL_UP_ORDER } from '../../core/graph.ts';
import { JOB_STATES, type JobState } from '../../core/state.ts';
import { pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { GRAPH_COLUMNS } from './graph-rows.ts';
import { MAX_COUNT } from './job-counts.ts';
import { idsThatBeginWith } from './job-filter.ts';
import { Params } from './params.ts';

/** Which graphs; as in JobFilter. `states`: rolled up from their nodes. */
export interface GraphFilter {
  states?: readonly JobState[] | null;
  /** Inclusive. */
  createdAfter?: string | null;
  /** Exclusive. */
  createdBefore?: string | null;
  submittedBy?: string | null;
  /** Prefix of the public id, the title or the idempotency key, whatever the case. */
  text?: string | null;
}

/** A place in the list of graphs: the newest first, the id decides among equals. */
export interface GraphPosition {
  at: string;
  id: string;
}

export interface GraphWindow {
  filter: GraphFilter;
  after: GraphPosition | null;
  before: GraphPosition | null;
  /** Take the last `limit` of the window, not the first. They come in the list's order all the same. */
  fromEnd: boolean;
  limit: number;
}

// As `rollUp`: the first of these states that any node is in.
const ROLLED_UP = `
(select coalesce(${ROLL_UP_ORDER.map((state) => `max(case when s.state = '${state}' then s.state end)`).join(', ')}, 'COMPLETED')
 from waymark.graph_nodes n
 cross join lateral (select s.state from waymark.job_states s where s.id = n.job_id offset 0) s
 where n.graph_id = g.id)`;

function conditions(filter: GraphFilter, tenant: string, params: Params): string[] {
  const all = [`g.tenant = ${params.add(tenant, 'text')}`, 'g.pruned_at is null'];
  const { createdAfter, createdBefore, submittedBy, text } = filter;
  if (createdAfter != null) all.push(`g.created_at >= ${params.add(createdAfter, 'text::timestamptz')}`);
  if (createdBefore != null) all.push(`g.created_at < ${params.add(createdBefore, 'text::timestamptz')}`);
  if (submittedBy != null) all.push(`g.submitted_by = ${params.add(submittedBy, 'text')}`);
  if (text != null) {
    const prefix = params.add(text, 'text');
    const parts = [
      `starts_with(lower(g.title), lower(${prefix}))`,
      `starts_with(lower(g.idempotency_key), lower(${prefix}))`,
    ];
    const ids = idsThatBeginWith(text, 'gra_');
    if (ids) parts.push(`g.id between ${params.add(ids.from, 'uuid')} and ${params.add(ids.to, 'uuid')}`);
    all.push(`(${parts.join(' or ')})`);
  }
  const states = filter.states == null ? null : JOB_STATES.filter((s) => filter.states?.includes(s));
  // Last, and only where it is asked for: it reads the nodes.
  if (states !== null) all.push(`${ROLLED_UP} = any(${params.add(pgTextArray(states), 'text::text[]')})`);
  return all;
}

/** Reads a window of the tenant's graphs, the newest first. */
export async function listGraphs(db: Executor, tenant: string, window: GraphWindow): Promise<GraphRow[]> {
  if (window.filter.states?.length === 0) return [];
  const params = new Params();
  const where = conditions(window.filter, tenant, params);
  const bound = (position: GraphPosition | null, operator: '<' | '>') => {
    if (position === null) return;
    const [at, id] = [params.add(position.at, 'text::timestamptz'), params.add(position.id, 'uuid')];
    where.push(`(g.created_at, g.id) ${operator} (${at}, ${id})`);
  };
  bound(window.after, '<');
  bound(window.before, '>');
  const direction = window.fromEnd ? 'asc' : 'desc';
  const rows = await db.query<GraphRow>(
    `select ${GRAPH_COLUMNS} from waymark.graphs g where ${where.join(' and ')}
order by g.created_at ${direction}, g.id ${direction} limit ${params.add(window.limit, 'int')}`,
    params.values,
  );
  return window.fromEnd ? rows.reverse() : rows;
}

/** How many graphs match, or null when there are more than `MAX_COUNT`. */
export async function totalGraphs(db: Executor, tenant: string, filter: GraphFilter): Promise<number | null> {
  if (filter.states?.length === 0) return 0;
  const params = new Params();
  const where = conditions(filter, tenant, params).join(' and ');
  const [row] = await db.query<{ n: number }>(
    `select count(*)::int as n from (
  select 1 from waymark.graphs g where ${where} limit ${params.add(MAX_COUNT + 1, 'int')}
) x`,
    params.values,
  );
  const n = row?.n ?? 0;
  return n > MAX_COUNT ? null : n;
}
