import { TERMINAL_EVENTS } from '../../../src/core/event.ts';
import { BUDGET_OUTCOMES, isTerminal } from '../../../src/core/state.ts';
import { byJob } from './by-job.ts';
import type { Report } from './checker.ts';
import type { AttemptFact, EventFact, History, JobFact } from './history.ts';

/** I2, I3 and I6: does each job's record make sense in itself? */
export function accountOfRuns({ jobs, attempts, events }: History, report: Report): void {
  const [attemptsOf, eventsOf] = [byJob(attempts), byJob(events)];
  for (const job of jobs) {
    oneEndPerRun(job, eventsOf(job.id), report);
    countedAttempts(job, attemptsOf(job.id), report);
    gaplessEvents(job, eventsOf(job.id), report);
  }
}

const isEnd = ({ type }: EventFact) => TERMINAL_EVENTS.includes(type);

function oneEndPerRun({ id, run, state }: JobFact, events: readonly EventFact[], report: Report): void {
  for (let r = 1; r <= run; r++) {
    const ofRun = events.filter((e) => e.run === r);
    const ends = ofRun.filter(isEnd).length;
    const due = r < run || isTerminal(state) ? 1 : 0;
    if (ends !== due) report('I2', `${id}: run ${r} has ${ends} terminal events, not ${due}`);
    const last = ofRun.at(-1);
    if (ends > 0 && last && !isEnd(last)) report('I2', `${id}: ${last.type} follows the end of run ${r}`);
  }
}

function countedAttempts(job: JobFact, attempts: readonly AttemptFact[], report: Report): void {
  const { id, attempt, run, state, failures, maxAttempts } = job;
  const numbers = attempts.map((a) => a.number).join(' ');
  const due = Array.from({ length: attempt }, (_, i) => i + 1).join(' ');
  if (numbers !== due) report('I3', `${id}: attempts ${numbers || 'none'}, not ${due || 'none'}`);

  const open = attempts.filter((a) => a.outcome === null).map((a) => a.number);
  const mayBeOpen = state === 'RUNNING' ? `${attempt}` : '';
  if (open.join(' ') !== mayBeOpen)
    report('I3', `${id} (${state}): open attempts ${open.join(' ') || 'none'}, not ${mayBeOpen || 'none'}`);
  for (const [i, { number, startedAt }] of attempts.entries()) {
    const before = attempts[i - 1];
    if (before?.finishedAt && startedAt < before.finishedAt)
      report('I3', `${id}: attempt ${number} began before attempt ${before.number} had ended`);
  }

  const spent = attempts.filter((a) => a.run === run && (BUDGET_OUTCOMES as readonly unknown[]).includes(a.outcome));
  if (failures !== spent.length)
    report('I3', `${id}: ${failures} failures are counted, ${spent.length} attempts failed`);
  if (failures > maxAttempts) report('I3', `${id}: ${failures} failures of ${maxAttempts}`);
}

function gaplessEvents({ id, lastSeq, state }: JobFact, events: readonly EventFact[], report: Report): void {
  const seqs = events.map((e) => e.seq);
  const gap = seqs.findIndex((seq, i) => seq !== i + 1);
  if (gap >= 0) report('I6', `${id}: event ${seqs[gap]} stands where ${gap + 1} should`);
  if (seqs.length !== lastSeq) report('I6', `${id}: ${seqs.length} events, the job says ${lastSeq}`);
  const late = events.find((e, i) => e.at < (events[i - 1]?.at ?? e.at));
  if (late) report('I6', `${id}: event ${late.seq} is older than the one before`);

  const last = events.at(-1);
  if (last && (last.state !== state || isEnd(last) !== isTerminal(state)))
    report('I6', `${id}: the last event is ${last.type} to ${last.state}, the job is ${state}`);
}
