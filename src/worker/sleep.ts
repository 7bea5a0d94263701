import { durationMs } from '../core/duration.ts';
import { NonRetryableError } from '../core/handler-errors.ts';
import { toIso } from '../core/job.ts';
import type { ClaimedJob } from '../engine/types.ts';
import type { AttemptWrites } from './attempt-writes.ts';
import type { Waits } from './waits.ts';

/** What a sleep leaves: its end, and the run that was suspended for it alone. */
interface SleepData {
  until: string;
  run: number | null;
}

/** Returns when the sleep is over, or suspends the attempt until then. The caller has checked the key. */
export async function sleepDurably(
  key: string,
  delay: string | number,
  job: ClaimedJob,
  writes: AttemptWrites,
  waits: Waits,
): Promise<void> {
  const delayMs = lengthOf(key, delay);
  const earlier = await writes.earlierOf(key, 'SLEEP');
  if (earlier === undefined) return waits.park({ kind: 'SLEEP', key, delayMs, until: null });
  const { until, run } = earlier.data as SleepData;
  // It goes on in the run that was suspended for it: its time came, or somebody woke it before.
  const over = run === job.run || Date.parse(until) <= Date.parse(toIso(job.at));
  if (!over) return waits.park({ kind: 'SLEEP', key, delayMs: null, until });
}

function lengthOf(key: string, delay: string | number): number {
  try {
    return durationMs(delay, `sleep ${JSON.stringify(key)}`);
  } catch (error) {
    throw new NonRetryableError((error as Error).message, { code: 'INVALID_OPTION', cause: error });
  }
}
