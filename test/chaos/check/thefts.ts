import type { Life } from '../cluster/service.ts';
import type { FaultRecord } from '../faults/fault-record.ts';
import { LEASE_MS } from '../settings.ts';
import type { AttemptFact, Theft } from './history.ts';

/**
 * Attempts that were taken from a worker although nothing was done to it or to its way to Postgres while they ran. An
 * outage of Postgres itself is no reason: it must not use up anybody's budget.
 */
export function theftsOf(
  lives: readonly Life[],
  attempts: readonly AttemptFact[],
  faults: readonly FaultRecord[],
): Theft[] {
  return attempts.flatMap(({ jobId, number, outcome, pid, startedAt, finishedAt }) => {
    if (outcome !== 'STALLED') return [];
    const service = lives.find(
      (l) => l.pid === pid && l.from <= startedAt && startedAt <= (l.to ?? startedAt),
    )?.service;
    const targets: readonly string[] = [`${service}`, `${service}-postgres`];
    const hit = faults.some(
      // A worker that was cut off has a lease to find its way back; what it claims just before that runs out is lost, too.
      (f) => targets.includes(f.planned.target) && f.from <= (finishedAt ?? 0) && f.to + LEASE_MS >= startedAt,
    );
    return hit ? [] : [{ jobId, attempt: number, service: service ?? `process ${pid}` }];
  });
}
