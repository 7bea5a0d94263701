import type { JobState } from '../../core/state.ts';
import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { filterConditions, type JobFilter, stateArms, stateIn } from './job-filter.ts';
import { Params } from './params.ts';

/** Jobs on which a verb is to be done: those of the filter in one of `states`. */
export interface BulkTarget {
  filter: JobFilter;
  states: readonly JobState[];
  /** Leave those out of what is to be done of which it was asked before. */
  notAsked: boolean;
}

/** Jobs are counted up to here. */
export const MAX_MATCHED = 1_000_000;

/** What an index of `jobs` finds; by all else the jobs of a state are gone through. */
const FINDS_JOBS = ['ids', 'tags', 'graphId', 'parentId', 'scheduleId', 'idempotencyKey'] as const;

/**
 * Where to begin is said here, and the other table is probed row by row. Left to the planner, a plan that was made
 * while the tables were small would compare every job with every state.
 */
function arms({ filter, states }: BulkTarget): { from: string; where: string }[] {
  if (states.length === 0) return [];
  if (FINDS_JOBS.some((field) => filter[field] != null)) {
    const from = `waymark.jobs j cross join lateral (select * from waymark.job_states x where x.id = j.id offset 0) s`;
    return [{ from, where: stateIn(states) }];
  }
  const from = `waymark.job_states s cross join lateral (select * from waymark.jobs x where x.id = s.id offset 0) j`;
  return states.flatMap(stateArms).map((where) => ({ from, where }));
}

function conditions({ filter }: BulkTarget, tenant: string, params: Params): string[] {
  // Of a job past its retention nothing is left that could be done, whoever asks for it by its id.
  return [...filterConditions(filter, tenant, params), 's.pruned_at is null'];
}

const OPEN = 's.cancel_requested_at is null';

/** The jobs that match, up to `max` of each state and so at least as many as there are up to `max`. */
function select(columns: string, target: BulkTarget, where: readonly string[], max: string): string {
  return arms(target)
    .map((arm) => `(select ${columns} from ${arm.from} where ${[arm.where, ...where].join(' and ')} limit ${max})`)
    .join(' union all ');
}

/** How many jobs match, and of how many it was not asked before. Both counted to `MAX_MATCHED`. */
export async function countTarget(
  db: Executor,
  tenant: string,
  target: BulkTarget,
): Promise<{ matched: number; open: number }> {
  if (target.states.length === 0) return { matched: 0, open: 0 };
  const params = new Params();
  const where = conditions(target, tenant, params);
  const max = params.add(MAX_MATCHED, 'int');
  const [row] = await db.query<{ matched: number; open: number }>(
    `select count(*)::int as matched, ${target.notAsked ? 'count(*) filter (where x.open)::int' : 'count(*)::int'} as open
     from (select * from (${select(`${OPEN} as open`, target, where, max)}) u limit ${max}) x`,
    params.values,
  );
  return row ?? { matched: 0, open: 0 };
}

/** Stored ids of up to `limit` of the jobs on which something is left to be done, in their order. */
export async function idsOfTarget(db: Executor, tenant: string, target: BulkTarget, limit: number): Promise<string[]> {
  if (target.states.length === 0) return [];
  const params = new Params();
  const where = conditions(target, tenant, params);
  if (target.notAsked) where.push(OPEN);
  const max = params.add(limit, 'int');
  const rows = await db.query<{ id: string }>(
    `select x.id from (select * from (${select('j.id', target, where, max)}) u limit ${max}) x order by x.id`,
    params.values,
  );
  return rows.map((row) => row.id);
}

/** Which of these jobs, which are locked, are still among them. */
export async function stillInTarget(
  tx: Executor,
  tenant: string,
  target: BulkTarget,
  ids: readonly string[],
): Promise<Set<string>> {
  const params = new Params();
  const where = [stateIn(target.states), ...conditions(target, tenant, params)];
  if (target.notAsked) where.push(OPEN);
  const rows = await tx.query<{ id: string }>(
    `select j.id
     from unnest(${params.add(pgArray(ids), 'text::uuid[]')}) as i(id)
     cross join lateral (select * from waymark.jobs x where x.id = i.id offset 0) j
     cross join lateral (select * from waymark.job_states x where x.id = i.id offset 0) s
     where ${where.join(' and ')}`,
    params.values,
  );
  return new Set(rows.map((row) => row.id));
}

const EDGES = `
select d.job_id as id, d.upstream_id as upstream
from unnest($1::text::uuid[]) as i(id)
cross join lateral (
  select d.job_id, d.upstream_id from waymark.job_dependencies d
  where d.job_id = i.id and d.kind = 'DEPENDENCY' and d.satisfied_at is null offset 0) d
where d.upstream_id = any($1::text::uuid[])`;

/** Which of these jobs wait, or would wait again, for which others of them. */
export function edgesAmong(db: Executor, ids: readonly string[]): Promise<{ id: string; upstream: string }[]> {
  return db.query(EDGES, [pgArray(ids)]);
}

const CHILDREN = `
with recursive f(root, id) as (
  select x.id, x.id from unnest($1::text::uuid[]) as x(id)
  union
  select f.root, c.id
  from f cross join lateral (
    select p.epoch from waymark.job_states p where p.id = f.id and p.finished_at is not null offset 0) p
  cross join lateral (
    select c.data from waymark.checkpoints c where c.job_id = f.id and c.epoch = p.epoch and c.kind = 'CHILDREN' offset 0) k
  cross join lateral json_array_elements_text(k.data -> 'jobs') as e
  cross join lateral (
    select s.id from waymark.job_states s where s.id = e::uuid and s.state in ('FAILED', 'CANCELED') offset 0) c
)
select f.root, f.id from f where f.id <> f.root`;

/** Of each of these jobs the children, at any depth, that run again with it: `childrenToRetry` for many. */
export async function childrenOfAll(db: Executor, ids: readonly string[]): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  for (const { root, id } of await db.query<{ root: string; id: string }>(CHILDREN, [pgArray(ids)])) {
    found.set(root, [...(found.get(root) ?? []), id]);
  }
  return found;
}
