import type { Life } from './cluster/service.ts';
import type { FaultRecord } from './faults/fault-record.ts';

/** Outages that a process logs about. */
const OUTAGES = ['kill-postgres', 'stop-postgres', 'kill-redis', 'cut', 'blackhole'];
/** Each loop says once that something failed and once that it is over; of a shorter time that is no rate. */
const LEAST_MS = 5_000;

/** For each process the most lines per second that it logged during an outage, and what that was. */
export function logRates(lives: readonly Life[], faults: readonly FaultRecord[]): string[] {
  const times = new Map<string, number[]>();
  for (const { service, log } of lives) times.set(service, [...(times.get(service) ?? []), ...linesOf(log())]);
  return [...times].map(([service, at]) => {
    let most = { rate: 0, kind: 'none' };
    for (const { planned, from, to } of faults) {
      if (!OUTAGES.includes(planned.kind) || !feels(service, planned.target)) continue;
      const ms = Math.max(LEAST_MS, to - from);
      const rate = at.filter((t) => t >= from && t < from + ms).length / (ms / 1_000);
      if (rate > most.rate) most = { rate, kind: planned.kind };
    }
    return `${service} ${most.rate.toFixed(1)} (${most.kind})`;
  });
}

const feels = (service: string, target: string) =>
  target === 'postgres' || target === 'redis' || target.startsWith(`${service}-`);

/** When each line was written; lines of user code and of the runtime have no time and count by the one before. */
function linesOf(log: string): number[] {
  let last = 0;
  return log
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const time = /"time":"([^"]+)"/.exec(line)?.[1];
      if (time) last = Date.parse(time);
      return last;
    });
}
