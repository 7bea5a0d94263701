import type { OutcomeRow } from '../../core/outcome.ts';
import { column, pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

/** Where the job has gone on since the run `i.run`, which did not complete: its end is in its events. */
const AS_OF_RUN = `
left join lateral (
  select case e.type when 'JobFailed' then 'FAILED' else 'CANCELED' end as state, e.data
  from waymark.events e
  where s.run > i.run and e.job_id = i.id and e.run = i.run and e.type in ('JobFailed', 'JobCanceled')
  order by e.seq desc limit 1
) w on true`;

const OUTCOME = (from: string, asOfRun: boolean) => `
select s.id as "jobId", j.task, j.node_name as name, p.data as result,${
  asOfRun
    ? `
       coalesce(w.state, s.state) as state, case when w.state is null then s.error else w.data -> 'error' end as error,
       case when w.state is null then s.cancel_reason else w.data ->> 'reason' end as reason,
       case when w.state is null then s.run else i.run end as run`
    : `
       s.state, s.error, s.cancel_reason as reason, s.run`
}
${from}
cross join lateral (
  select x.id, x.state, x.run, x.error, x.cancel_reason from waymark.job_states x where x.id = i.id offset 0) s
cross join lateral (select x.task, x.node_name from waymark.jobs x where x.id = i.id offset 0) j
left join lateral (
  select x.data from waymark.payloads x where x.job_id = i.id and x.kind = 'result' and s.state = 'COMPLETED' offset 0
) p on true
${asOfRun ? AS_OF_RUN : ''}
order by i.n`;

const BY_IDS = OUTCOME('from unnest($1::uuid[], $2::int[]) with ordinality as i(id, run, n)', true);
const OF_DEPENDENCIES = OUTCOME(
  `
from (select d.upstream_id as id, d.position as n from waymark.job_dependencies d
      where d.job_id = $1::uuid and d.kind = 'DEPENDENCY') i`,
  false,
);

/**
 * How these jobs stand, in the order of the ids; those that are gone are left out.
 * @param runs as of the end of this run of each, where that was not COMPLETED; null: as of now
 */
export function outcomesOf(
  db: Executor,
  ids: readonly string[],
  runs: readonly (number | null)[] | null,
): Promise<OutcomeRow[]> {
  return db.query<OutcomeRow>(BY_IDS, [pgArray(ids), column(ids.map((_, i) => runs?.[i] ?? null))]);
}

/** How the jobs stand that a job depends on, in the order in which they were given. */
export function dependencyOutcomes(db: Executor, jobId: string): Promise<OutcomeRow[]> {
  return db.query<OutcomeRow>(OF_DEPENDENCIES, [jobId]);
}
