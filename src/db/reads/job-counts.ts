import { isTerminal, JOB_STATES, type JobState, TERMINAL_STATES, UNFINISHED_STATES } from '../../core/state.ts';
import { pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { filterConditions, type JobFilter, stateIn } from './job-filter.ts';
import { Params } from './params.ts';

/** Finished jobs are counted up to here where rows have to be counted; a list's total likewise. */
export const MAX_COUNT = 10_000;

export interface StateCountRow {
  state: JobState;
  count: number;
  /** True: there are more than `count`. */
  capped: boolean;
}

/** What the counters know of one (queue, task, state) of a tenant. */
export interface CounterRow {
  queue: string;
  task: string;
  state: JobState;
  n: number;
}

// The counters lag behind by what is not folded yet; both are read in one statement, so a fold is seen whole or not.
const COUNTERS = (where: string) => `
select x.queue, x.task, x.state, sum(x.n)::bigint as n
from (
  select c.tenant, c.queue, c.task, c.state, c.n from waymark.counts c
  union all
  select d.tenant, d.queue, d.task, d.to_state, d.n from waymark.count_deltas d where d.to_state is not null
  union all
  select d.tenant, d.queue, d.task, d.from_state, -d.n from waymark.count_deltas d where d.from_state is not null
) x
where ${where}
group by x.queue, x.task, x.state
having sum(x.n) > 0`;

/** How many jobs a tenant has per queue, task and state, from the counters: no job is read. */
export function readCounters(
  db: Executor,
  tenant: string,
  only: { tasks?: readonly string[] | null; queues?: readonly string[] | null } = {},
): Promise<CounterRow[]> {
  const params = new Params();
  const where = [`x.tenant = ${params.add(tenant, 'text')}`];
  if (only.tasks != null) where.push(`x.task = any(${params.add(pgTextArray(only.tasks), 'text::text[]')})`);
  if (only.queues != null) where.push(`x.queue = any(${params.add(pgTextArray(only.queues), 'text::text[]')})`);
  return db.query<CounterRow>(COUNTERS(where.join(' and ')), params.values);
}

const COUNTED_FIELDS: ReadonlySet<string> = new Set(['states', 'tasks', 'queues'] satisfies (keyof JobFilter)[]);

/** Whether the counters alone can answer a filter. */
export function countersAnswer(filter: JobFilter): boolean {
  return Object.entries(filter).every(([field, value]) => value == null || COUNTED_FIELDS.has(field));
}

/**
 * Jobs per state, all nine states in the order of the machine. Exact from the counters where the filter names nothing
 * but states, tasks and queues; else unfinished jobs are counted exactly, finished ones up to `MAX_COUNT`.
 */
export async function countJobs(db: Executor, tenant: string, filter: JobFilter): Promise<StateCountRow[]> {
  const states = filter.states ?? JOB_STATES;
  const found = new Map<JobState, number>();
  const rows = countersAnswer(filter)
    ? await readCounters(db, tenant, filter)
    : await countRows(db, tenant, filter, states);
  for (const { state, n } of rows) found.set(state, (found.get(state) ?? 0) + n);
  const exact = countersAnswer(filter);
  return JOB_STATES.map((state) => {
    const n = states.includes(state) ? (found.get(state) ?? 0) : 0;
    const capped = !exact && isTerminal(state) && n > MAX_COUNT;
    return { state, count: capped ? MAX_COUNT : n, capped };
  });
}

async function countRows(
  db: Executor,
  tenant: string,
  filter: JobFilter,
  states: readonly JobState[],
): Promise<{ state: JobState; n: number }[]> {
  const params = new Params();
  const where = filterConditions(filter, tenant, params).join(' and ');
  const max = params.add(MAX_COUNT + 1, 'int');
  const from = 'from waymark.jobs j join waymark.job_states s on s.id = j.id';
  const unfinished = UNFINISHED_STATES.filter((s) => states.includes(s));
  const selects = TERMINAL_STATES.filter((s) => states.includes(s)).map(
    (state) =>
      `select '${state}' as state, count(*) as n
         from (select 1 ${from} where ${stateIn([state])} and ${where} limit ${max}) x`,
  );
  if (unfinished.length > 0) {
    selects.push(`select s.state, count(*) as n ${from} where ${stateIn(unfinished)} and ${where} group by s.state`);
  }
  return selects.length === 0 ? [] : db.query(selects.join('\nunion all\n'), params.values);
}

/** How many jobs match, or null when there are more than `MAX_COUNT`. */
export async function totalJobs(db: Executor, tenant: string, filter: JobFilter): Promise<number | null> {
  if (countersAnswer(filter)) {
    const total = (await countJobs(db, tenant, filter)).reduce((sum, c) => sum + c.count, 0);
    return total > MAX_COUNT ? null : total;
  }
  const params = new Params();
  const where = filterConditions(filter, tenant, params);
  if (filter.states) where.push(stateIn(filter.states));
  const [row] = await db.query<{ n: number }>(
    `select count(*) as n from (
       select 1 from waymark.jobs j join waymark.job_states s on s.id = j.id
       where ${where.join(' and ')} limit ${params.add(MAX_COUNT + 1, 'int')}
     ) x`,
    params.values,
  );
  const n = row?.n ?? 0;
  return n > MAX_COUNT ? null : n;
}
