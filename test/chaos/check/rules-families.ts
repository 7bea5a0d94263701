import { isTerminal } from '../../../src/core/state.ts';
import { byJob } from './by-job.ts';
import type { Report } from './checker.ts';
import type { History, JobFact } from './history.ts';

const TERMINAL = ['JobCompleted', 'JobFailed', 'JobCanceled'];

/** I5 and the children: did everybody wait for whom he had to, and no longer? */
export function accountOfFamilies(history: History, report: Report): void {
  const jobs = new Map(history.jobs.map((job) => [job.id, job]));
  const eventsOf = byJob(history.events);
  for (const { id, upstream } of history.accepted) {
    if (upstream === null) continue;
    const ended = eventsOf(upstream).find((e) => TERMINAL.includes(e.type))?.at;
    const started = eventsOf(id).find((e) => e.type === 'AttemptStarted')?.at;
    if (started !== undefined && (ended === undefined || started < ended)) {
      report('I5', `${id} started before ${upstream}, which it depends on, had ended`);
    }
  }
  const childrenOf = new Map<string, JobFact[]>();
  for (const job of history.jobs) {
    if (job.parentId !== null) childrenOf.set(job.parentId, [...(childrenOf.get(job.parentId) ?? []), job]);
  }
  for (const { id, plan } of history.accepted) {
    if (plan.task !== 'family') continue;
    const parent = jobs.get(id);
    const children = childrenOf.get(id) ?? [];
    const planned = Number(plan.input.n);
    // All of them with one commit, or none: it was canceled before.
    if (children.length !== 0 && children.length !== planned) {
      report('I5', `${id} has ${children.length} of ${planned} children`);
    }
    if (parent?.state !== 'COMPLETED') continue;
    const texts = (parent.result as { texts?: string[] } | null)?.texts ?? [];
    if (children.some((child) => child.state !== 'COMPLETED') || texts.length !== planned) {
      report('I5', `${id} is COMPLETED with ${children.map((child) => child.state).join(', ') || 'no'} children`);
    }
    if (texts.some((text, i) => text !== `child ${i}`)) report('I5', `${id}: results in the order ${texts.join(', ')}`);
    const last = Math.max(
      ...children.map((child) => eventsOf(child.id).find((e) => TERMINAL.includes(e.type))?.at ?? 0),
    );
    const end = eventsOf(id).find((e) => e.type === 'JobCompleted')?.at ?? 0;
    if (children.every((child) => isTerminal(child.state)) && end < last) {
      report('I5', `${id} ended before its children`);
    }
  }
}
