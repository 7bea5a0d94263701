import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from 'postgres';
import { expect } from 'vitest';
import { eventually } from '../support/eventually.ts';

const BASELINE_MS = 5_000;

/** The longest of what was seen, in milliseconds; 0 when it was not seen at all. */
export interface Seen {
  samples: number;
  idleInTransactionMs: number;
  /** Waiting for a lock that is neither a row's nor a transaction's, such as one that all commits share. */
  commonLockMs: number;
}

const LOOK = `
select
  (select coalesce(max(extract(epoch from clock_timestamp() - a.state_change)), 0)::float8 * 1000
   from pg_stat_activity a
   where a.datname = current_database() and a.application_name like 'waymark%'
     and a.state like 'idle in transaction%') as idle,
  (select coalesce(max(extract(epoch from clock_timestamp() - l.waitstart)), 0)::float8 * 1000
   from pg_locks l join pg_stat_activity a on a.pid = l.pid
   where not l.granted and l.locktype not in ('transactionid', 'tuple') and a.datname = current_database()) as common`;

const INTERVAL_MS = 20;

/** Looks at the backends of a database again and again until it is told to stop. */
export function watchBackends(sql: Sql): { stop(): Promise<Seen> } {
  const seen: Seen = { samples: 0, idleInTransactionMs: 0, commonLockMs: 0 };
  let stopped = false;
  const watching = (async () => {
    for (; !stopped; seen.samples++) {
      const [row] = await sql.unsafe<{ idle: number; common: number }[]>(LOOK);
      seen.idleInTransactionMs = Math.max(seen.idleInTransactionMs, row?.idle ?? 0);
      seen.commonLockMs = Math.max(seen.commonLockMs, row?.common ?? 0);
      await sleep(INTERVAL_MS);
    }
    return seen;
  })();
  return {
    stop() {
      stopped = true;
      return watching;
    },
  };
}

/** Waymark's connections to a database. */
export async function backendsOf(sql: Sql): Promise<{ all: number; busy: number }> {
  const [row] = await sql<{ all: number; busy: number }[]>`
    select count(*)::int as all, (count(*) filter (where state <> 'idle'))::int as busy from pg_stat_activity
    where datname = current_database() and application_name like 'waymark%'`;
  return row ?? { all: 0, busy: 0 };
}

/** Nobody's statement is left, nor a connection that was opened for one. */
export function backToBaseline(sql: Sql, baseline: { all: number }): Promise<void> {
  return eventually(
    async () => {
      const { all, busy } = await backendsOf(sql);
      expect(busy).toBe(0);
      expect(all).toBeLessThanOrEqual(baseline.all);
    },
    { timeoutMs: BASELINE_MS },
  );
}
