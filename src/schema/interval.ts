import { badInput } from './paging.ts';

/** The shortest interval between two messages of a stream. */
const MIN_INTERVAL_MS = 50;
const MAX_INTERVAL_MS = 60 * 60_000;

/** `minInterval` in milliseconds, 250 when it is not given. @throws BAD_USER_INPUT */
export function readInterval(given: number | null | undefined): number {
  const ms = given ?? 250;
  if (ms < MIN_INTERVAL_MS || ms > MAX_INTERVAL_MS) throw badInput('minInterval', 'must be from 50ms to 1h');
  return ms;
}
