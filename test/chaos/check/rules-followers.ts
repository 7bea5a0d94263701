import { TERMINAL_EVENTS } from '../../../src/core/event.ts';
import { isTerminal } from '../../../src/core/state.ts';
import type { Following } from '../load/followers.ts';
import { byJob } from './by-job.ts';
import type { Report } from './checker.ts';
import type { EventFact, History, JobFact } from './history.ts';

/** P12: was every subscriber told what happened, in order, each fact once, to the end? */
export function accountOfFollowers({ followings, jobs, events }: History, report: Report): void {
  const eventsOf = byJob(events);
  const jobOf = new Map(jobs.map((job) => [job.id, job]));
  for (const following of followings) {
    const { jobId, api, by, ended } = following;
    // Whoever follows a job that goes on for ever has nothing to complain of: the job has.
    const job = jobOf.get(jobId);
    if (job && !isTerminal(job.state)) continue;
    const who = `${by} of ${jobId} over API ${api + 1}`;
    if (ended !== 'end')
      report('P12', `${who}: ${ended} after ${following.facts.length + following.views.length} values`);
    else if (by === 'progress') gauges(who, following, job, report);
    else facts(who, following, eventsOf(jobId), report);
  }
}

function facts(who: string, { after, facts }: Following, log: readonly EventFact[], report: Report): void {
  const due = log.slice(after);
  for (const [i, { seq, type, run, attempt }] of facts.entries()) {
    const logged = due[i];
    if (logged && logged.seq === seq && logged.type === type && logged.run === run && logged.attempt === attempt)
      continue;
    report(
      'P12',
      `${who}: fact ${i + 1} is ${seq} ${type}, the log has ${logged ? `${logged.seq} ${logged.type}` : 'no more'}`,
    );
    return;
  }
  const last = facts.at(-1);
  if (!last || !TERMINAL_EVENTS.includes(last.type as never))
    report('P12', `${who}: ended behind ${last ? `${last.seq} ${last.type}` : 'nothing'}`);
}

function gauges(who: string, { views }: Following, job: JobFact | undefined, report: Report): void {
  const back = views.findIndex((view, i) => i > 0 && view.version <= (views[i - 1]?.version ?? 0));
  if (back >= 0) report('P12', `${who}: version ${views[back]?.version} after ${views[back - 1]?.version}`);
  const last = views.at(-1);
  // A job that was retried meanwhile has gone on.
  const isNow = last?.run !== job?.run || (last?.version === job?.version && last?.state === job?.state);
  if (!last || !isNow)
    report(
      'P12',
      `${who}: the last value is ${last?.state} ${last?.version}, the job is ${job?.state} ${job?.version}`,
    );
}
