import type { Life } from '../cluster/service.ts';
import type { FaultRecord } from '../faults/fault-record.ts';
import { LEASE_MS, RECOVERY_MS, SWEEP_MS } from '../settings.ts';
import { byJob } from './by-job.ts';
import type { AttemptFact, Recovery } from './history.ts';

/** For each attempt that was running in a process as it was killed: how long until the job's next attempt began. */
export function recoveriesOf(
  lives: readonly Life[],
  attempts: readonly AttemptFact[],
  faults: readonly FaultRecord[],
): Recovery[] {
  const attemptsOf = byJob(attempts);
  return lives.flatMap(({ service, pid, code, from, to }) => {
    if (code !== 'SIGKILL' || to === null) return [];
    const fault = faults.find((f) => f.planned.target === service && f.from <= to && to <= f.to);
    const calm = fault?.planned.calm === true && isCalm(fault, to, faults);
    const lost = attempts.filter((a) => a.pid === pid && a.startedAt >= from && (a.finishedAt ?? 0) > to);
    return lost.flatMap((attempt) => {
      const next = attemptsOf(attempt.jobId).find((a) => a.number === attempt.number + 1);
      if (!next) return [];
      const { jobId, number } = attempt;
      return [{ jobId, attempt: number, ms: next.startedAt - to, calm }];
    });
  });
}

/**
 * Whether nothing else was wrong around a kill: a fault that should have been over may have taken longer on a busy machine,
 * and who sweeps must first have seen the store for a whole lease.
 */
function isCalm(kill: FaultRecord, at: number, faults: readonly FaultRecord[]): boolean {
  const [from, to] = [at - LEASE_MS - SWEEP_MS, at + RECOVERY_MS];
  return faults.every((f) => f === kill || f.to < from || f.from > to);
}
