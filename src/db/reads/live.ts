import type { EventData, EventType, JobEvent } from '../../core/event.ts';
import type { JobRow } from '../../core/job.ts';
import type { JobState } from '../../core/state.ts';
import { pgArray, pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';
import { JOB_COLUMNS } from './job-row.ts';

/** A job of a tenant: nothing is read of a job without naming whose it is. */
export interface LiveKey {
  tenant: string;
  jobId: string;
}

const ROWS = `
select ${JOB_COLUMNS}
from unnest($1::uuid[], $2::text[]) as x(id, tenant)
join waymark.jobs j on j.id = x.id and j.tenant = x.tenant
join waymark.job_states s on s.id = j.id`;

/** The jobs that are there, in no particular order. */
export function readLiveRows(db: Executor, keys: readonly LiveKey[]): Promise<JobRow[]> {
  return db.query<JobRow>(ROWS, keyParams(keys));
}

/** How far a job has come. */
export interface LiveHead extends LiveKey {
  state: JobState;
  version: number;
  lastSeq: number;
  pruned: boolean;
}

const HEADS = `
select s.id as "jobId", s.tenant, s.state, s.version, s.last_seq as "lastSeq", s.pruned_at is not null as pruned
from unnest($1::uuid[], $2::text[]) as x(id, tenant)
join waymark.job_states s on s.id = x.id and s.tenant = x.tenant`;

/** How far each job has come, of those that are there, in no particular order. */
export function readLiveHeads(db: Executor, keys: readonly LiveKey[]): Promise<LiveHead[]> {
  return db.query<LiveHead>(HEADS, keyParams(keys));
}

const EVENTS = `
select x.after, e.job_id as "jobId", e.seq, e.at, e.type, e.run, e.attempt, e.actor, e.state, e.data
from unnest($1::uuid[], $2::text[], $3::int[]) as x(id, tenant, after)
join waymark.job_states s on s.id = x.id and s.tenant = x.tenant
cross join lateral (
  select * from waymark.events e where e.job_id = x.id and e.seq > x.after order by e.seq limit $4::int
) e
order by e.seq`;

interface EventRow extends Omit<JobEvent, 'data'> {
  after: number;
  type: EventType;
  data: EventData | null;
}

/** For each key the first `limit` facts behind `after`, `seq` ascending. */
export async function readLiveEvents(
  db: Executor,
  keys: readonly (LiveKey & { after: number })[],
  limit: number,
): Promise<{ jobId: string; after: number; events: JobEvent[] }[]> {
  const rows = await db.query<EventRow>(EVENTS, [...keyParams(keys), pgArray(keys.map((k) => k.after)), limit]);
  const pages = new Map<string, JobEvent[]>();
  for (const { after, data, ...event } of rows) {
    const page = pages.get(`${event.jobId}:${after}`);
    const read = { ...event, data: data ?? {} };
    if (page) page.push(read);
    else pages.set(`${event.jobId}:${after}`, [read]);
  }
  return keys.map(({ jobId, after }) => ({ jobId, after, events: pages.get(`${jobId}:${after}`) ?? [] }));
}

const PULSES = `
select tenant, state, sum(n)::bigint as n from (
  select tenant, state, n from waymark.counts where tenant = any($1::text[])
  union all
  select tenant, to_state, n from waymark.count_deltas where tenant = any($1::text[]) and to_state is not null
  union all
  select tenant, from_state, -n from waymark.count_deltas where tenant = any($1::text[]) and from_state is not null
) x group by tenant, state having sum(n) <> 0 order by tenant, state`;

/** What tells cheaply whether a tenant's jobs have moved: a text that differs when one changed its state, came or went. */
export interface TenantPulse {
  tenant: string;
  pulse: string;
  running: number;
}

export async function readTenantPulses(db: Executor, tenants: readonly string[]): Promise<TenantPulse[]> {
  const rows = await db.query<{ tenant: string; state: JobState; n: number }>(PULSES, [pgTextArray(tenants)]);
  return tenants.map((tenant) => {
    const states = rows.filter((r) => r.tenant === tenant);
    return {
      tenant,
      pulse: states.map((r) => `${r.state} ${r.n}`).join(', '),
      running: states.find((r) => r.state === 'RUNNING')?.n ?? 0,
    };
  });
}

function keyParams(keys: readonly LiveKey[]): [ids: string, tenants: string] {
  return [pgArray(keys.map((k) => k.jobId)), pgTextArray(keys.map((k) => k.tenant))];
}
