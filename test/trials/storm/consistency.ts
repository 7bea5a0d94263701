import type { Sql } from 'postgres';

/**
 * What must be true of the tables at every moment, also in the midst of writers: each rule is one query for the ids
 * that break it. Each transition is one transaction, so that any snapshot must satisfy all of them.
 */
const TERMINAL = `('JobCompleted', 'JobFailed', 'JobCanceled')`;
const KEPT = 'waymark.job_states s where s.pruned_at is null';

const RULES: Record<string, string> = {
  'events are numbered without a gap up to last_seq': `
    select s.id::text from waymark.job_states s left join lateral (
      select count(*) as n, max(e.seq) as last from waymark.events e where e.job_id = s.id) e on true
    where s.pruned_at is null and (e.n <> s.last_seq or e.last is distinct from s.last_seq)`,
  'a run has at most one terminal event': `
    select e.job_id::text from waymark.events e where e.type in ${TERMINAL} group by e.job_id, e.run having count(*) > 1`,
  'a finished run ends with its terminal event, and no other run has one': `
    select s.id::text from waymark.job_states s where s.pruned_at is null and (s.finished_at is not null) <> exists (
      select 1 from waymark.events e
      where e.job_id = s.id and e.run = s.run and e.seq = s.last_seq and e.type in ${TERMINAL})`,
  'attempts are numbered without a gap': `
    select s.id::text from waymark.job_states s left join lateral (
      select count(*) as n, max(a.number) as last from waymark.attempts a where a.job_id = s.id) a on true
    where s.pruned_at is null and (a.n <> s.attempt or coalesce(a.last, 0) <> s.attempt)`,
  'the newest attempt of a running job is open, and no other is': `
    select s.id::text from waymark.job_states s join waymark.attempts a on a.job_id = s.id
    where (a.outcome is null) <> (s.state = 'RUNNING' and a.number = s.attempt)`,
  'a key that is unique while unfinished has one unfinished job': `
    select min(s.id::text) from waymark.job_states s join waymark.jobs j on j.id = s.id
    where j.idempotency_key like 'exclusive%' and s.finished_at is null
    group by j.tenant, j.task, j.idempotency_key having count(*) > 1`,
  'a key leads to a job': `
    select k.key from waymark.idempotency_keys k where not exists (
      select 1 from waymark.job_states s where s.id = k.job_id and k.kind <> 'graph'
      union all select 1 from waymark.graphs g where g.id = k.job_id and k.kind = 'graph')`,
  'a job and its state are there together': `
    select coalesce(j.id, s.id)::text from waymark.jobs j full join waymark.job_states s on s.id = j.id
    where j.id is null or s.id is null`,
  'nothing is left of a job that was removed': ['events', 'attempts', 'checkpoints', 'payloads']
    .map(
      (table) =>
        `select x.job_id::text from waymark.${table} x where not exists (select 1 from ${KEPT} and s.id = x.job_id)`,
    )
    .join(' union all '),
  'a job that waits for others has an edge that is not satisfied': `
    select s.id::text from waymark.job_states s where s.state = 'DEFERRED' and not exists (
      select 1 from waymark.job_dependencies d where d.job_id = s.id and d.satisfied_at is null
        and d.kind = case s.waiting_kind when 'CHILDREN' then 'CHILD' else 'DEPENDENCY' end)`,
  'whoever waits for a job that has ended is about to be told': `
    select s.id::text from waymark.job_states s join waymark.job_dependencies d on d.job_id = s.id
    join waymark.job_states u on u.id = d.upstream_id
    where s.state = 'DEFERRED' and d.satisfied_at is null and u.finished_at is not null
      and d.kind = case s.waiting_kind when 'CHILDREN' then 'CHILD' else 'DEPENDENCY' end
      and not exists (select 1 from waymark.followups f where f.job_id = u.id)`,
  'what was canceled because of a job that runs again is about to be told': `
    select s.id::text from waymark.job_states s join waymark.job_states u on u.id = s.failed_upstream_id
    where s.state = 'CANCELED' and u.finished_at is null
      and not exists (select 1 from waymark.followups f where f.job_id = u.id)`,
  'nobody is asked by a job that has ended, or is about to be told': `
    select s.id::text from waymark.approvals a join waymark.job_states s on s.id = a.job_id
    where a.state = 'OPEN' and s.finished_at is not null
      and not exists (select 1 from waymark.followups f where f.job_id = s.id)`,
  'a job that waits for people has an open question': `
    select s.id::text from waymark.job_states s where s.state = 'WAITING_FOR_REVIEW'
      and not exists (select 1 from waymark.approvals a where a.job_id = s.id and a.state = 'OPEN')`,
  'of a concurrency key one job goes, the others are behind it': `
    select s.concurrency_key from waymark.job_states s
    where s.concurrency_key is not null and s.finished_at is null and not s.blocked
      and s.waiting_kind is distinct from 'DEPENDENCIES'
    group by s.tenant, s.concurrency_key having count(*) > 1`,
  'a job behind another of its key is let go some day': `
    select s.id::text from waymark.job_states s where s.blocked and s.finished_at is null and not exists (
      select 1 from waymark.concurrency_keys k join waymark.job_states h on h.id = k.head_job_id
      where k.tenant = s.tenant and k.key = s.concurrency_key and h.id <> s.id
        and (h.finished_at is null or exists (select 1 from waymark.followups f where f.job_id = h.id)))`,
  'nothing hangs on a job that is gone': `
    select d.job_id::text from waymark.job_dependencies d
    where not exists (select 1 from ${KEPT} and s.id = d.job_id)
    union all
    select a.job_id::text from waymark.approvals a where not exists (select 1 from ${KEPT} and s.id = a.job_id)
    union all
    select n.graph_id::text from waymark.graph_nodes n where not exists (
      select 1 from waymark.graphs g where g.id = n.graph_id)
    union all
    select j.id::text from waymark.jobs j where j.graph_id is not null
      and exists (select 1 from ${KEPT} and s.id = j.id)
      and not exists (select 1 from waymark.graphs g where g.id = j.graph_id)`,
  'counters say how many jobs there are': `
    select coalesce(c.state, n.state) || ': ' || coalesce(c.n, 0) || ' for ' || coalesce(n.n, 0) from (
      select x.state, sum(x.n) as n from (
        select c.state, c.n from waymark.counts c
        union all select d.to_state, d.n from waymark.count_deltas d where d.to_state is not null
        union all select d.from_state, -d.n from waymark.count_deltas d where d.from_state is not null
      ) x group by x.state
    ) c full join (select s.state, count(*) as n from ${KEPT} group by s.state) n on n.state = c.state
    where coalesce(c.n, 0) <> coalesce(n.n, 0)`,
};

const CHECK = Object.entries(RULES)
  .map(([rule, query]) => `select '${rule}' as rule, array(select b from (${query}) x(b) limit 5) as broken`)
  .join(' union all ');

/** The rules that are broken now, with some of the jobs that break them; read in one snapshot. */
export async function inconsistencies(sql: Sql): Promise<Record<string, string[]>> {
  const rows = await sql.unsafe<{ rule: string; broken: string[] }[]>(CHECK);
  return Object.fromEntries(rows.filter((row) => row.broken.length > 0).map((row) => [row.rule, row.broken]));
}
