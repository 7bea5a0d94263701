import type postgres from 'postgres';

/** Jobs that are in the tables before anything is measured, as a year of use would have left them. */
export interface Filling {
  name: string;
  state: 'COMPLETED' | 'QUEUED' | 'SCHEDULED';
  /** Of a queue or task other than the one that is measured, unless they are finished. */
  queue: string;
  task: string;
}

export const FILLINGS: readonly (Filling & { jobs: number })[] = [
  { name: 'finished', state: 'COMPLETED', queue: 'default', task: 'noop', jobs: 1_000_000 },
  { name: 'waiting in another queue', state: 'QUEUED', queue: 'other', task: 'noop', jobs: 500_000 },
  { name: 'waiting of another task', state: 'QUEUED', queue: 'default', task: 'other', jobs: 500_000 },
  { name: 'scheduled ahead', state: 'SCHEDULED', queue: 'default', task: 'noop', jobs: 500_000 },
];

const AT_ONCE = 100_000;

/** Writes that many jobs, with all that belongs to them. A second call adds as many. */
export async function fill(sql: postgres.Sql, filling: Filling, jobs: number): Promise<void> {
  const { state, queue, task } = filling;
  const finished = state === 'COMPLETED';
  await sql`insert into waymark.queues (name, id, created_at) values (${queue}, gen_random_uuid(), now())
            on conflict do nothing`;
  for (let from = 0; from < jobs; from += AT_ONCE) {
    await sql`
with x as materialized (
  select gen_random_uuid() as id, now() - interval '1 day' + g * interval '50 microseconds' as at
  from generate_series(${from + 1}::int, ${Math.min(jobs, from + AT_ONCE)}::int) g
),
j as (
  insert into waymark.jobs (id, tenant, task, queue, priority, tags, input_digest, submitted_by, backoff, created_at)
  select id, 'default', ${task}, ${queue}, 0, '{}', repeat('a', 64), 'user:local',
         '{"type":"exponential","delayMs":1000,"factor":2,"maxMs":600000,"jitter":0.2}', at
  from x
),
s as (
  insert into waymark.job_states (id, tenant, task, queue, state, max_attempts, rank, run_at, queued_at, changed_at,
                                  started_at, finished_at, attempt, last_seq, version)
  select id, 'default', ${task}, ${queue}, ${state}, 3, at,
         case when ${state === 'SCHEDULED'} then at + interval '30 days' else at end,
         case when ${state !== 'SCHEDULED'} then at end, at, case when ${finished} then at end,
         case when ${finished} then at end, ${finished ? 1 : 0}::int, ${finished ? 3 : 1}::int, ${finished ? 3 : 1}::int
  from x
),
p as (
  insert into waymark.payloads (job_id, kind, data) select id, 'input', '{"user":"user-17","order":4711}' from x
),
a as (
  insert into waymark.ended_attempts (job_id, number, run, outcome, digest, worker_id, started_at, finished_at)
  select id, 1, 1, 'SUCCEEDED', 'SUCCEEDED:', gen_random_uuid(), at, at from x where ${finished}
),
e as (
  insert into waymark.events (job_id, seq, at, type, run, state)
  select id, n, at, case n when 1 then 'JobSubmitted' when 2 then 'AttemptStarted' else 'JobCompleted' end, 1, ${state}
  from x, generate_series(1, ${finished ? 3 : 1}::int) n
)
insert into waymark.count_deltas (at, tenant, queue, task, from_state, to_state, n)
select now(), 'default', ${queue}, ${task}, null, ${state}, count(*) from x`;
  }
}
