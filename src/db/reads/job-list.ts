import type { JobRow } from '../../core/job.ts';
import { isTerminal, JOB_STATES, type JobState } from '../../core/state.ts';
import type { Executor } from '../types.ts';
import { filterConditions, type JobFilter, stateArms, stateIn } from './job-filter.ts';
import { JOB_COLUMNS } from './job-row.ts';
import { Params } from './params.ts';

/** Orders of a job list; the id decides among equals. */
export const JOB_ORDERS = ['CREATED_DESC', 'CREATED_ASC', 'UPDATED_DESC', 'RUN_AT_ASC', 'FINISHED_DESC'] as const;
export type JobOrder = (typeof JOB_ORDERS)[number];

/** A place in a list. Moments are Postgres's text, so that no microsecond is lost and no row is skipped. */
export interface JobPosition {
  /** Which part of the list, from 0: FINISHED_DESC shows finished jobs first, then the unfinished ones. */
  part: number;
  at: string;
  id: string;
}

/** A window of a list, in the list's order. */
export interface JobWindow {
  filter: JobFilter;
  order: JobOrder;
  after: JobPosition | null;
  before: JobPosition | null;
  /** Take the last `limit` jobs of the window, not the first. They come in the list's order all the same. */
  fromEnd: boolean;
  limit: number;
}

export interface ListedJob {
  row: JobRow;
  position: JobPosition;
}

/** A set of jobs that one index gives in order. */
interface Arm {
  key: string;
  where: string;
}

/** A part of a list: its arms are merged by their keys. */
type Part = readonly Arm[];

const oneArm = (key: string, states: readonly JobState[] | null): Part => [
  { key, where: states === null ? 'true' : stateIn(states) },
];
/** Arms by state: an index of finished jobs is in order only within a state, and no index is about several states. */
const armsByState = (key: string, states: readonly JobState[]): Part =>
  states.flatMap(stateArms).map((where) => ({ key, where }));

/**
 * The parts of a list, so that none of them has to sort finished jobs: these are many and come by index. A finished job
 * was changed last when it finished, hence `finished_at` stands for `changed_at` there.
 */
function partsOf(order: JobOrder, filter: JobFilter): Part[] {
  const states = filter.states ?? null;
  const wanted = JOB_STATES.filter((s) => states === null || states.includes(s));
  const finished = wanted.filter(isTerminal);
  const unfinished = wanted.filter((s) => !isTerminal(s));
  switch (order) {
    case 'CREATED_DESC':
    case 'CREATED_ASC':
      return [oneArm('j.created_at', states)];
    case 'RUN_AT_ASC':
      return [oneArm('s.run_at', states)];
    case 'UPDATED_DESC':
      return [[...armsByState('s.changed_at', unfinished), ...armsByState('s.finished_at', finished)]];
    case 'FINISHED_DESC':
      return [armsByState('s.finished_at', finished), armsByState('s.changed_at', unfinished)];
  }
}

/** Reads a window of a list. One statement; a second one only where a list of two parts goes from one to the other. */
export async function listJobs(db: Executor, tenant: string, window: JobWindow): Promise<ListedJob[]> {
  if (window.filter.states?.length === 0) return [];
  const parts = partsOf(window.order, window.filter);
  const found: ListedJob[] = [];
  const indexes = parts.map((_, i) => i);
  for (const index of window.fromEnd ? indexes.reverse() : indexes) {
    const missing = window.limit - found.length;
    const outside =
      (window.after !== null && index < window.after.part) || (window.before !== null && index > window.before.part);
    const part = parts[index] ?? [];
    if (missing <= 0 || outside || part.length === 0) continue;
    const rows = await readPart(db, tenant, window, part, index, missing);
    found.push(...rows);
  }
  return window.fromEnd ? found.reverse() : found;
}

async function readPart(
  db: Executor,
  tenant: string,
  window: JobWindow,
  part: Part,
  index: number,
  limit: number,
): Promise<ListedJob[]> {
  const params = new Params();
  const conditions = filterConditions(window.filter, tenant, params);
  const ascending = window.order.endsWith('_ASC');
  const [later, earlier] = ascending ? ['>', '<'] : ['<', '>'];
  const bound = (position: JobPosition | null, operator: string | undefined) =>
    position?.part === index
      ? [operator, params.add(position.at, 'text::timestamptz'), params.add(position.id, 'uuid')]
      : null;
  const bounds = [bound(window.after, later), bound(window.before, earlier)].filter((b) => b !== null);
  const direction = ascending !== window.fromEnd ? 'asc' : 'desc';
  const max = params.add(limit, 'int');

  const arms = part.map(({ key, where }) => {
    const all = [where, ...conditions, ...bounds.map(([op, at, id]) => `(${key}, j.id) ${op} (${at}, ${id})`)];
    return `(select j.id, ${key} as key from waymark.jobs j join waymark.job_states s on s.id = j.id
     where ${all.join(' and ')}
     order by ${key} ${direction}, j.id ${direction} limit ${max})`;
  });
  const rows = await db.query<JobRow & { listKey: string }>(
    `select ${JOB_COLUMNS}, p.key as "listKey"
     from (select * from (${arms.join(' union all ')}) u order by u.key ${direction}, u.id ${direction} limit ${max}) p
     join waymark.jobs j on j.id = p.id join waymark.job_states s on s.id = p.id
     order by p.key ${direction}, p.id ${direction}`,
    params.values,
  );
  return rows.map(({ listKey, ...row }) => ({ row, position: { part: index, at: listKey, id: row.id } }));
}

/** Whether a window holds any job. */
export async function anyJob(db: Executor, tenant: string, window: Omit<JobWindow, 'limit'>): Promise<boolean> {
  return (await listJobs(db, tenant, { ...window, limit: 1 })).length > 0;
}
