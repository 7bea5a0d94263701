import type { ApprovalRow, ApprovalState } from '../../core/approval.ts';
import { pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { APPROVAL_COLUMNS } from './approvals.ts';
import { MAX_COUNT } from './job-counts.ts';
import { Params } from './params.ts';

/** Which approvals. Fields are joined by AND; null is as if not given. Ids in stored form. */
export interface ApprovalFilter {
  /** An empty list matches nothing. */
  states?: readonly ApprovalState[] | null;
  jobId?: string | null;
  /** Of the jobs of this graph, children included. */
  graphId?: string | null;
  /** That this person may decide now: true, or may not: false. */
  viewer?: { can: boolean; actor: string; groups: readonly string[] } | null;
  /** In which this actor has voted. */
  decidedBy?: string | null;
}

export const APPROVAL_ORDERS = ['REQUESTED_ASC', 'REQUESTED_DESC', 'EXPIRES_ASC'] as const;
export type ApprovalOrder = (typeof APPROVAL_ORDERS)[number];

/** A place in a list; the id decides among equals. */
export interface ApprovalPosition {
  at: string;
  id: string;
}

export interface ApprovalWindow {
  filter: ApprovalFilter;
  order: ApprovalOrder;
  after: ApprovalPosition | null;
  before: ApprovalPosition | null;
  /** Take the last `limit` of the window, not the first. They come in the list's order all the same. */
  fromEnd: boolean;
  limit: number;
}

// What never expires comes last among those by their end.
const KEYS: Record<ApprovalOrder, string> = {
  REQUESTED_ASC: 'a.requested_at',
  REQUESTED_DESC: 'a.requested_at',
  EXPIRES_ASC: `coalesce(a.expires_at, 'infinity'::timestamptz)`,
};

const FROM = 'waymark.approvals a join waymark.jobs j on j.id = a.job_id';

/** As `decideProblem` of `core/approval.ts`, of an approval that is open. */
function canDecide(viewer: { actor: string; groups: readonly string[] }, params: Params): string {
  const actor = params.add(viewer.actor, 'text');
  const mine = [viewer.actor, ...viewer.groups.map((g) => (g.startsWith('group:') ? g : `group:${g}`))];
  return `(a.state = 'OPEN' and (a.allow_submitter or j.submitted_by <> ${actor})
    and (a.approvers = '{}' or a.approvers && ${params.add(pgTextArray(mine), 'text::text[]')})
    and not exists (select 1 from waymark.approval_decisions d where d.approval_id = a.id and d.actor = ${actor}))`;
}

function conditions(filter: ApprovalFilter, tenant: string, params: Params): string[] {
  const all = [`a.tenant = ${params.add(tenant, 'text')}`];
  const { states, jobId, graphId, viewer, decidedBy } = filter;
  // Word for word what the index of open ones says, where only these are asked for.
  if (states?.length === 1 && states[0] === 'OPEN') all.push(`a.state = 'OPEN'`);
  else if (states != null) all.push(`a.state = any(${params.add(pgTextArray(states), 'text::text[]')})`);
  if (jobId != null) all.push(`a.job_id = ${params.add(jobId, 'uuid')}`);
  if (graphId != null) all.push(`j.graph_id = ${params.add(graphId, 'uuid')}`);
  if (viewer != null) all.push(viewer.can ? canDecide(viewer, params) : `not ${canDecide(viewer, params)}`);
  if (decidedBy != null) {
    const actor = params.add(decidedBy, 'text');
    all.push(`(a.decided_by = ${actor} or exists (
      select 1 from waymark.approval_decisions d where d.approval_id = a.id and d.actor = ${actor}))`);
  }
  return all;
}

/** An approval with what orders it in its list. */
export type ListedApproval = ApprovalRow & { listKey: string };

/** Reads a window of the tenant's approvals. */
export async function listApprovals(db: Executor, tenant: string, window: ApprovalWindow): Promise<ListedApproval[]> {
  if (window.filter.states?.length === 0) return [];
  const params = new Params();
  const where = conditions(window.filter, tenant, params);
  const key = KEYS[window.order];
  const ascending = window.order.endsWith('_ASC');
  const bound = (position: ApprovalPosition | null, later: boolean) => {
    if (position === null) return;
    const [at, id] = [params.add(position.at, 'text::timestamptz'), params.add(position.id, 'uuid')];
    where.push(`(${key}, a.id) ${later === ascending ? '>' : '<'} (${at}, ${id})`);
  };
  bound(window.after, true);
  bound(window.before, false);
  const direction = ascending !== window.fromEnd ? 'asc' : 'desc';
  const rows = await db.query<ListedApproval>(
    `select ${APPROVAL_COLUMNS}, ${key} as "listKey" from ${FROM} where ${where.join(' and ')}
order by ${key} ${direction}, a.id ${direction} limit ${params.add(window.limit, 'int')}`,
    params.values,
  );
  return window.fromEnd ? rows.reverse() : rows;
}

/** How many approvals match, or null when there are more than `MAX_COUNT`. */
export async function countApprovals(db: Executor, tenant: string, filter: ApprovalFilter): Promise<number | null> {
  if (filter.states?.length === 0) return 0;
  const params = new Params();
  const where = conditions(filter, tenant, params).join(' and ');
  const [row] = await db.query<{ n: number }>(
    `select count(*)::int as n from (select 1 from ${FROM} where ${where} limit ${params.add(MAX_COUNT + 1, 'int')}) x`,
    params.values,
  );
  const n = row?.n ?? 0;
  return n > MAX_COUNT ? null : n;
}

/** Which of these approvals match, in no particular order. */
export function matchingApprovals(
  db: Executor,
  tenant: string,
  filter: ApprovalFilter,
  jobIds: readonly string[],
): Promise<ApprovalRow[]> {
  const params = new Params();
  const where = conditions(filter, tenant, params);
  where.push(`a.job_id = any(${params.add(`{${jobIds.join(',')}}`, 'text::uuid[]')})`);
  return db.query<ApprovalRow>(
    `select ${APPROVAL_COLUMNS} from ${FROM} where ${where.join(' and ')} order by a.id`,
    params.values,
  );
}
