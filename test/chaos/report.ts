import { percentile } from './check/by-job.ts';
import type { AttemptFact } from './check/history.ts';
import type { Violation } from './check/violation.ts';
import { RULES } from './check/violation.ts';
import type { Life } from './cluster/service.ts';
import type { FaultRecord } from './faults/fault-record.ts';
import { logRates } from './log-rates.ts';
import type { Round } from './round.ts';
import { FAULT_KINDS } from './schedule.ts';

const MOST_EXAMPLES = 5;

/** The figures of a round, for people. */
export function describeRound({ history, lives, loadMs, quietMs, followersMs, lockWaits, loopDelayMs }: Round): string {
  const { jobs, accepted, attempts, errors, followings, recoveries, faults, ledger } = history;
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  const spread = (values: readonly number[]) =>
    values.length === 0
      ? 'none'
      : `p50 ${Math.round(percentile(values, 50))} ms, p99 ${Math.round(percentile(values, 99))} ms (${values.length})`;
  const tally = (names: readonly string[]) => {
    const counts = new Map<string, number>();
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
    return [...counts].map(([name, n]) => `${name} ${n}`).join(', ') || 'none';
  };
  const ends = new Map(jobs.map((job) => [job.id, job.state]));
  const unplanned = accepted.filter(({ plan, id }) => !plan.ends.includes(ends.get(id) as never));
  const canceled = jobs.filter((job) => job.cancelStoppedAt !== null);
  const cancelMs = (forced: boolean) =>
    canceled
      .filter((job) => job.cancelForced === forced)
      .map((job) => (job.cancelStoppedAt ?? 0) - (job.cancelRequestedAt ?? 0))
      .filter((ms) => ms > 0);
  const lost = attempts.filter((a) => a.outcome !== 'SUCCEEDED' && a.outcome !== 'CANCELED' && a.outcome !== 'FAILED');
  const failed = attempts.filter((a) => a.outcome === 'FAILED');
  const ofKind = (kind: string) => faults.filter((f) => f.planned.kind === kind);
  const steps = new Set(ledger.map((line) => `${line.jobId} ${line.step}`)).size;
  return [
    `jobs         ${accepted.length} accepted, ${tally(jobs.map((job) => job.state))}; ${(accepted.length / (loadMs / 1_000)).toFixed(1)} jobs/s; ${unplanned.length} not as planned`,
    `submit       accepted after ${spread(accepted.map((a) => a.tookMs))}`,
    `attempts     ${attempts.length}; lost: ${tally(lost.map((a) => a.outcome ?? 'open'))}; failed: ${tally(failed.map((a) => a.errorCode ?? '?'))}`,
    `steps        ${steps} executed, ${ledger.length - steps} more than once`,
    `recovery     of killed workers' jobs, calm: ${spread(recoveries.filter((r) => r.calm).map((r) => r.ms))}; all: ${spread(recoveries.map((r) => r.ms))}`,
    `outages      Postgres back to the next attempt: ${spread(restartsOf(history))}`,
    `black holes  on the way to Postgres, healed to the next attempt of that worker: ${spread(returnsOf(history.faults, attempts, lives))}`,
    `cancel       of running jobs: ${spread(cancelMs(false))}; past the grace time: ${spread(cancelMs(true))}`,
    `quiet        last job after ${seconds(quietMs)}, last subscriber ${seconds(followersMs)} later`,
    `subscribers  ${followings.length}, ${followings.reduce((n, f) => n + f.facts.length + f.views.length, 0)} values`,
    `told errors  ${tally(errors.map((e) => `${e.doing}: ${e.code}`))}`,
    `resources    ${history.resources.map((r) => `${r.what} ${r.before} → ${r.after} (≤ ${r.most})`).join(', ')}`,
    `faults       ${FAULT_KINDS.map((kind) => `${kind} ${ofKind(kind).filter((f) => f.observed).length}/${ofKind(kind).length}`).join(', ')}`,
    `lock waits   over 1 s: ${tally(lockWaits)}`,
    `bench        its own loop was late by at most ${Math.round(loopDelayMs)} ms`,
    `log lines/s  ${logRates(lives, faults).join(', ')}`,
  ].join('\n');
}

/** What was violated, in plain words; each rule with some examples. */
export function describeViolations(violations: readonly Violation[]): string {
  return Object.entries(RULES)
    .flatMap(([rule, meaning]) => {
      const texts = violations.filter((v) => v.rule === rule).map((v) => `    ${v.text}`);
      if (texts.length === 0) return [];
      const more = texts.length > MOST_EXAMPLES ? [`    … and ${texts.length - MOST_EXAMPLES} more`] : [];
      return [`  ${rule}, ${meaning}: ${texts.length} times`, ...texts.slice(0, MOST_EXAMPLES), ...more];
    })
    .join('\n');
}

/** For each time that Postgres came back: how long until some worker took a job. */
function restartsOf({ faults, attempts }: Round['history']): number[] {
  const began = attempts.map((a) => a.startedAt).sort((a, b) => a - b);
  return faults
    .filter(({ planned }) => planned.kind === 'kill-postgres' || planned.kind === 'stop-postgres')
    .flatMap(({ to }) => (began.find((at) => at >= to) ?? Number.NaN) - to)
    .filter((ms) => !Number.isNaN(ms));
}

/** For each worker whose way to Postgres was a black hole: how long it took, once that was over, until it worked again. */
function returnsOf(faults: readonly FaultRecord[], attempts: readonly AttemptFact[], lives: readonly Life[]): number[] {
  return faults.flatMap(({ planned, to }) => {
    if (planned.kind !== 'blackhole') return [];
    const life = lives.find((l) => planned.target === `${l.service}-postgres` && l.from <= to && to <= (l.to ?? to));
    const next = attempts.filter((a) => a.pid === life?.pid && a.startedAt >= to).map((a) => a.startedAt - to);
    return next.length > 0 ? [Math.min(...next)] : [];
  });
}
