import { LIMITED, room } from '../queue-limits.ts';
import { pgTextArray } from '../sql.ts';
import type { Tx } from '../types.ts';
import { type ClaimRequest, type ClaimRow, claimSql, heads, runClaim } from './claim.ts';

// In order of the names, like all who lock several. SKIP LOCKED: whoever holds the row is claiming from this queue at
// this moment. To wait for it would keep this worker from its other queues, for ever when that process is frozen; so the
// caller looks again a moment later, which loses no job.
const LOCK = `
select q.name from waymark.queues q
where q.name = any($1::text[]) and not q.paused and ${LIMITED}
order by q.name
for no key update skip locked`;

/** Locks queues for a claim of what their limits leave. Those that are paused, or locked by somebody else, are left out. */
export async function lockLimited(tx: Tx, names: readonly string[]): Promise<string[]> {
  const rows = await tx.query<{ name: string }>(LOCK, [pgTextArray(names)]);
  return rows.map((row) => row.name);
}

/** Up to here each claim has a row of its own among the starts; beyond, a window has as many rows at most. */
const MAX_ROWS = 1_000;

// A start counts from the moment that its event tells, and leaves the table when it has left the window. Under a limit
// of many, starts of the same thousandth of the window share a row with the time of the last of them: a claim need not
// add up a hundred thousand rows, and what was started is free again that much later, never sooner.
const CLAIM_LIMITED = claimSql(
  `
select y.id
from (
  select x.id, x.rank, q.room, row_number() over (partition by q.name order by x.rank, x.id) as nth
  from w, open q, ${heads('least(q.room, $4::int)')}
  where q.room > 0
) y
where y.nth <= y.room
order by y.rank, y.id
limit $4::int`,
  {
    before: `
open as materialized (
  select q.name, q.rate_limit_max, q.rate_limit_per_ms, ${room('(select now from t)')} as room
  from waymark.queues q
  where q.name = any($2::text[]) and not q.paused and ${LIMITED}
),`,
    after: `
starts as materialized (
  select m.queue, max(m.changed_at) as at, count(*)::int as n
  from m join open q on q.name = m.queue
  where q.rate_limit_per_ms is not null
  group by m.queue
),
shared as (
  update waymark.queue_starts b
  set at = s.at, n = b.n + s.n
  from starts s join open q on q.name = s.queue, lateral (
    select x.ctid from waymark.queue_starts x
    where x.queue = s.queue
      and x.at >= date_bin(q.rate_limit_per_ms * interval '1 millisecond' / ${MAX_ROWS}, s.at, 'epoch')
    order by x.at desc
    limit 1
  ) newest
  where q.rate_limit_max > ${MAX_ROWS} and b.ctid = newest.ctid
  returning b.queue
),
added as (
  insert into waymark.queue_starts (queue, at, n)
  select s.queue, s.at, s.n from starts s where s.queue not in (select shared.queue from shared)
),
gone as (
  delete from waymark.queue_starts b using open q
  where b.queue = q.name and b.at <= (select now from t) - q.rate_limit_per_ms * interval '1 millisecond'
),`,
  },
);

/**
 * QUEUED → RUNNING for up to `limit` jobs of queues that `lockLimited` has locked, as many of each as its limits leave.
 * A statement of its own behind that lock: only its snapshot has what the last holder of the lock has started (in one
 * statement with the lock a limit of 10 ran 40).
 */
export function claimLimited(
  tx: Tx,
  workerId: string,
  request: ClaimRequest & { queues: readonly string[] },
): Promise<ClaimRow[]> {
  return runClaim(tx, CLAIM_LIMITED, workerId, request);
}
