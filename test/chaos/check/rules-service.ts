import { FAULT_KINDS } from '../schedule.ts';
import { RECOVERY_MS } from '../settings.ts';
import { percentile } from './by-job.ts';
import type { Report } from './checker.ts';
import type { History } from './history.ts';

/** What a client may be told while things are broken: by its own network, by its own timeout, or by the service. */
const ALLOWED = new Set([
  'UNREACHABLE',
  'TimeoutError',
  'AbortError',
  'UNAVAILABLE',
  'LIMIT_EXCEEDED',
  'CLIENT_CLOSED',
]);
/** Of these codes the words are the service's own; they must not tell of its inside. */
const OWN_WORDS = /ECONN|EPIPE|postgres|redis|\bselect\b|\bwaymark\.|\bat \/|\.ts:\d|127\.0\.0\.1/i;

/** I9, I10, I11, P6 and P7: how did the service behave as a whole? */
export function accountOfService(history: History, report: Report): void {
  for (const { doing, code, message } of history.errors) {
    const leaks = code !== 'UNREACHABLE' && OWN_WORDS.test(message);
    if (!ALLOWED.has(code) || leaks) report('I9', `a client that wanted to ${doing} was told ${code}: ${message}`);
  }
  for (const { service, detail } of history.badEnds) report('I9', `${service}: ${detail}`);

  for (const { what, before, after, most } of history.resources)
    if (after > most) report('I10', `${what}: ${before} before, ${after} after, at most ${most}`);

  for (const kind of FAULT_KINDS) {
    const fired = history.faults.filter((f) => f.planned.kind === kind);
    if (fired.some((f) => f.observed)) continue;
    const details = fired.map((f) => f.detail).join('; ');
    report('I11', fired.length === 0 ? `${kind} never happened` : `${kind} was never felt: ${details}`);
  }

  for (const { jobId, attempt, service } of history.thefts)
    report('P7', `${jobId}: attempt ${attempt} was taken from ${service}, to which nothing had been done`);

  const calm = history.recoveries.filter((r) => r.calm).map((r) => r.ms);
  const p99 = percentile(calm, 99);
  if (p99 > RECOVERY_MS) report('P6', `p99 of ${calm.length} recoveries is ${Math.round(p99)} ms, not ${RECOVERY_MS}`);
}
