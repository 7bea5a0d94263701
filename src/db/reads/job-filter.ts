import { isTerminal, type JobState } from '../../core/state.ts';
import { pgArray, pgTextArray } from '../sql.ts';
import { HEALTH, WAITING } from './job-conditions.ts';
import type { Params } from './params.ts';

/**
 * Which jobs. Fields are joined by AND; the values of a list by OR, except `tags`: all of them. An empty list matches
 * nothing, null or undefined is as if not given. Ids in stored form, moments in RFC 3339.
 */
export interface JobFilter {
  ids?: readonly string[] | null;
  states?: readonly JobState[] | null;
  tasks?: readonly string[] | null;
  queues?: readonly string[] | null;
  tags?: readonly string[] | null;
  graphId?: string | null;
  parentId?: string | null;
  scheduleId?: string | null;
  /** Jobs that this worker runs now. */
  workerId?: string | null;
  idempotencyKey?: string | null;
  submittedBy?: string | null;
  errorCodes?: readonly string[] | null;
  health?: readonly string[] | null;
  waitingKinds?: readonly string[] | null;
  /** Inclusive. */
  createdAfter?: string | null;
  /** Exclusive. */
  createdBefore?: string | null;
  finishedAfter?: string | null;
  finishedBefore?: string | null;
  /** Prefix of the public id, the title (as shown) or the idempotency key, whatever the case. */
  text?: string | null;
}

/** Whether a filter asks for certain jobs: then those past retention are shown, too, of which only the row is left. */
export function namesJobs(filter: JobFilter): boolean {
  return filter.ids != null || filter.idempotencyKey != null;
}

/**
 * What a state is in SQL: literals, and word for word what the partial indexes say, or the planner would not use them.
 * QUEUED has two indexes, for jobs that may be claimed and for those that wait for their key.
 */
export function stateArms(state: JobState): string[] {
  if (isTerminal(state)) return [`s.state = '${state}' and s.finished_at is not null`];
  if (state !== 'QUEUED') return [`s.state = '${state}'`];
  return [`s.state = 'QUEUED' and not s.blocked`, `s.state = 'QUEUED' and s.blocked`];
}

/** Being in one of some states, as one condition. */
export function stateIn(states: readonly JobState[]): string {
  return states.length === 0 ? 'false' : `(${states.flatMap(stateArms).join(' or ')})`;
}

/** The WHERE of a filter over `waymark.jobs j` joined with `waymark.job_states s`, without `states`. */
export function filterConditions(filter: JobFilter, tenant: string, params: Params): string[] {
  const all: string[] = [`j.tenant = ${params.add(tenant, 'text')}`];
  if (!namesJobs(filter)) all.push('s.pruned_at is null');

  const one = (column: string, value: string | null | undefined, cast: string) => {
    if (value != null) all.push(`${column} = ${params.add(value, cast)}`);
  };
  /** Equality for a single value: with it an index also gives the order. */
  const anyOf = (column: string, values: readonly string[] | null | undefined) => {
    if (values == null) return;
    if (values.length === 1) one(column, values[0], 'text');
    else all.push(`${column} = any(${params.add(pgTextArray(values), 'text::text[]')})`);
  };
  const moment = (column: string, operator: '>=' | '<', value: string | null | undefined) => {
    if (value != null) all.push(`${column} ${operator} ${params.add(value, 'text::timestamptz')}`);
  };

  if (filter.ids != null) all.push(`j.id = any(${params.add(pgArray(filter.ids), 'text::uuid[]')})`);
  anyOf('j.task', filter.tasks);
  anyOf('j.queue', filter.queues);
  if (filter.tags?.length === 0) all.push('false');
  else if (filter.tags != null) {
    // The second condition says nothing new to anybody but the planner: the index has no jobs without tags.
    all.push(`j.tags @> ${params.add(pgTextArray(filter.tags), 'text::text[]')} and j.tags <> '{}'`);
  }
  one('j.graph_id', filter.graphId, 'uuid');
  one('j.parent_id', filter.parentId, 'uuid');
  one('j.schedule_id', filter.scheduleId, 'uuid');
  if (filter.workerId != null) {
    all.push(`s.state = 'RUNNING' and s.worker_id = ${params.add(filter.workerId, 'uuid')}`);
  }
  one('j.idempotency_key', filter.idempotencyKey, 'text');
  one('j.submitted_by', filter.submittedBy, 'text');
  if (filter.errorCodes != null) {
    all.push(stateIn(['RETRYING', 'FAILED']));
    anyOf(`(s.error ->> 'code')`, filter.errorCodes);
  }
  if (filter.health != null) {
    if (!filter.health.includes('OK')) all.push(`s.state = 'RUNNING'`);
    anyOf(`(${HEALTH})`, filter.health);
  }
  if (filter.waitingKinds != null) {
    all.push('s.finished_at is null');
    anyOf(`(${WAITING})`, filter.waitingKinds);
  }
  moment('j.created_at', '>=', filter.createdAfter);
  moment('j.created_at', '<', filter.createdBefore);
  moment('s.finished_at', '>=', filter.finishedAfter);
  moment('s.finished_at', '<', filter.finishedBefore);
  if (filter.text != null) all.push(textCondition(filter.text, params));
  return all;
}

function textCondition(text: string, params: Params): string {
  const prefix = params.add(text, 'text');
  const parts = [
    `starts_with(lower(coalesce(j.title, j.task)), lower(${prefix}))`,
    `starts_with(lower(j.idempotency_key), lower(${prefix}))`,
  ];
  const ids = idsThatBeginWith(text);
  if (ids) parts.push(`j.id between ${params.add(ids.from, 'uuid')} and ${params.add(ids.to, 'uuid')}`);
  return `(${parts.join(' or ')})`;
}

/** Crockford's base32, as TypeIDs have it: 26 letters of 5 bits hold 128 bits, so the first one goes up to 7 only. */
const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz';
const SUFFIX = new RegExp(`^([0-7][${LETTERS}]{0,25})?$`);

/**
 * The stored ids whose public form begins with `text`, which is a range, or null when there can be none.
 * @param prefix of the public ids, with its line
 */
export function idsThatBeginWith(text: string, prefix = 'job_'): { from: string; to: string } | null {
  const lower = text.toLowerCase();
  const suffix = lower.startsWith(prefix) ? lower.slice(prefix.length) : prefix.startsWith(lower) ? '' : null;
  if (suffix === null || !SUFFIX.test(suffix)) return null;
  const last = suffix === '' ? '7' : suffix;
  return { from: decode(suffix.padEnd(26, '0')), to: decode(last.padEnd(26, 'z')) };
}

function decode(suffix: string): string {
  const bits = [...suffix].reduce((sum, letter) => sum * 32n + BigInt(LETTERS.indexOf(letter)), 0n);
  const hex = bits.toString(16).padStart(32, '0');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
