import { isTerminal, JOB_STATES } from '../../../src/core/state.ts';
import type { Report } from './checker.ts';
import type { History } from './history.ts';

/** Of all jobs so many must end as planned, or the round has shown nothing. */
const LEAST_SHARE = 0.8;

/** I1, I7, I11 and the counts: are all jobs there, and did they come to their end? */
export function accountOfJobs({ accepted, unresolved, jobs, counted }: History, report: Report): void {
  for (const { id, api } of unresolved) report('I1', `${id} was accepted; API ${api + 1} does not find it`);

  const byKey = new Map<string, string[]>();
  for (const { key, id } of jobs) byKey.set(key ?? id, [...(byKey.get(key ?? id) ?? []), id]);
  for (const { plan, ids } of accepted) {
    const known = byKey.get(plan.key) ?? [];
    const answered = [...new Set(ids)];
    if (known.length === 1 && answered.length === 1 && known[0] === answered[0]) continue;
    report(
      'I1',
      `key ${plan.key} was answered with ${answered.join(', ')} and stands for ${known.join(', ') || 'no job'}`,
    );
  }

  for (const job of jobs) {
    if (isTerminal(job.state)) continue;
    const worker = job.worker ? ` on ${job.worker.lives ? 'living' : 'dead'} worker ${job.worker.id}` : '';
    report('I7', `${job.id} (${job.task}) is still ${job.state}${worker}, attempt ${job.attempt}`);
  }

  const ends = new Map(jobs.map((job) => [job.id, job.state]));
  const asPlanned = accepted.filter(({ plan, id }) => plan.ends.includes(ends.get(id) as never)).length;
  if (asPlanned < accepted.length * LEAST_SHARE || accepted.length === 0)
    report('I11', `only ${asPlanned} of ${accepted.length} jobs ended as planned`);

  // While jobs go on, the counts of two moments are compared.
  if (jobs.some((job) => !isTerminal(job.state))) return;
  for (const api of new Set(counted.map((c) => c.api))) {
    for (const state of JOB_STATES) {
      const count = counted.find((c) => c.api === api && c.state === state)?.count ?? 0;
      const real = jobs.filter((job) => job.state === state).length;
      if (count !== real) report('COUNTS', `API ${api + 1} counts ${count} jobs in ${state}, there are ${real}`);
    }
  }
}
