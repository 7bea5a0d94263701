import type { Executor } from '../../src/db/types.ts';

/** One attempt, as its events tell it: milliseconds and parts of one, since 1970. */
export interface Start {
  startedMs: number;
  /** Infinity while it runs. */
  endedMs: number;
}

const STARTS = `
select (extract(epoch from a.at) * 1e6)::bigint as started, (extract(epoch from e.at) * 1e6)::bigint as ended
from waymark.jobs j
join waymark.events a on a.job_id = j.id and a.type = 'AttemptStarted'
left join lateral (
  select x.at from waymark.events x where x.job_id = j.id and x.seq > a.seq order by x.seq limit 1
) e on true
where j.queue = $1
order by a.at`;

/** All attempts of the jobs of a queue, by when they started. Handlers that write events in between are not for this. */
export async function startsIn(db: Executor, queue: string): Promise<Start[]> {
  const rows = await db.query<{ started: number; ended: number | null }>(STARTS, [queue]);
  return rows.map(({ started, ended }) => ({
    startedMs: started / 1_000,
    endedMs: ended === null ? Number.POSITIVE_INFINITY : ended / 1_000,
  }));
}

/** How many ran at the same time at most. */
export function mostAtOnce(starts: readonly Start[]): number {
  return Math.max(
    0,
    ...starts.map(({ startedMs: at }) => starts.filter((s) => s.startedMs <= at && at < s.endedMs).length),
  );
}

/** The shortest time in which more than `max` started, from the first of them to the last. */
export function narrowestMs(starts: readonly Start[], max: number): number {
  const times = starts.map((s) => s.startedMs).sort((a, b) => a - b);
  return Math.min(...times.slice(max).map((at, i) => at - (times[i] ?? at)));
}
