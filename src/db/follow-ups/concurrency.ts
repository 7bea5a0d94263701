import { pgArray, pgTextArray, probes } from '../sql.ts';
import type { Executor } from '../types.ts';

/** Of a job `s`: it is DEFERRED, and what it waits for is there. */
export const WAITS_NO_MORE = `
s.state = 'DEFERRED' and not exists (
  select 1 from waymark.job_dependencies d
  where d.job_id = s.id and d.satisfied_at is null
    and d.kind = case s.waiting_kind when 'CHILDREN' then 'CHILD' else 'DEPENDENCY' end)`;

// The keys of the ended jobs are locked along, so that all locks on keys are taken in one order.
const TAKE_TURNS = `
with l as materialized (
  select s.id, s.tenant, s.concurrency_key as key from waymark.job_states s
  where s.id = any($2::uuid[]) and s.concurrency_key is not null and s.waiting_kind = 'DEPENDENCIES' and ${WAITS_NO_MORE}
),
e as materialized (
  select k.head_job_id as id, k.tenant, k.key
  from waymark.job_states s join waymark.concurrency_keys k
    on ${probes('k.tenant', 's.tenant')} and ${probes('k.key', 's.concurrency_key')} and k.head_job_id = s.id
  where s.id = any($1::uuid[]) and s.finished_at is not null
),
h as (
  insert into waymark.concurrency_keys as k (tenant, key, head_job_id)
  select distinct on (x.tenant, x.key) x.tenant, x.key, x.id
  from (select * from l union all select * from e) x
  order by x.tenant, x.key, x.id
  on conflict (tenant, key) do update set head_job_id = k.head_job_id
  returning k.tenant, k.key, k.head_job_id
)
update waymark.job_states s set blocked = true
from l join h on h.tenant = l.tenant and h.key = l.key
where ${probes('s.id', 'l.id')} and h.head_job_id <> l.id`;

/**
 * Those of these locked jobs that have done with waiting for others get their turn for their concurrency keys: they go first,
 * or are behind whoever does. Before the keys of `ended` are passed on.
 */
export async function takeTurns(tx: Executor, ended: readonly string[], ready: readonly string[]): Promise<void> {
  await tx.query(TAKE_TURNS, [pgArray(ended), pgArray(ready)]);
}

const LOCK_KEYS = `
with e as materialized (
  select s.id, s.tenant, s.concurrency_key as key from waymark.job_states s
  where s.id = any($1::uuid[]) and s.finished_at is not null and s.concurrency_key is not null
  order by s.tenant, s.concurrency_key
)
select k.tenant, k.key, k.head_job_id as head from e cross join lateral (
  select * from waymark.concurrency_keys k
  where k.tenant = e.tenant and k.key = e.key and k.head_job_id = e.id
  for update
) k`;

const NEXT = `
select i.head, n.id
from unnest($1::text[], $2::text[], $3::uuid[]) as i(tenant, key, head) cross join lateral (
  select s.id from waymark.job_states s
  where s.blocked and s.tenant = i.tenant and s.concurrency_key = i.key and s.finished_at is null
  order by s.id limit 1
) n`;

const IS_KEY = `${probes('k.tenant', 'i.tenant')} and ${probes('k.key', 'i.key')}`;

const DROP = `
delete from waymark.concurrency_keys k using unnest($1::text[], $2::text[]) as i(tenant, key) where ${IS_KEY}`;

const PASS_ON = `
with i as (select * from unnest($1::text[], $2::text[], $3::uuid[]) as x(tenant, key, next)),
k as (update waymark.concurrency_keys k set head_job_id = i.next from i where ${IS_KEY})
update waymark.job_states s set blocked = false, version = s.version + 1
from i where ${probes('s.id', 'i.next')}
returning s.id, s.tenant, s.task, s.queue, s.state, s.run, s.version, s.last_seq as "lastSeq"`;

/** A job about which something changed without a fact: watchers are told to look. */
export interface UntoldRow {
  id: string;
  tenant: string;
  task: string;
  queue: string;
  state: string;
  run: number;
  version: number;
  lastSeq: number;
}

/**
 * Passes the concurrency keys of ended jobs on to the next of each, or drops them. `left`: ended jobs whose next came in
 * this moment and is not locked; they are to be followed up once more.
 */
export async function passKeysOn(
  tx: Executor,
  ended: readonly string[],
  locked: ReadonlySet<string>,
): Promise<{ unblocked: UntoldRow[]; left: string[] }> {
  // Locked first and looked at in a later statement: a submit that holds the key has then written its job.
  const keys = await tx.query<KeyRow>(LOCK_KEYS, [pgArray(ended)]);
  if (keys.length === 0) return { unblocked: [], left: [] };
  const next = await tx.query<{ head: string; id: string }>(NEXT, [...names(keys), pgArray(keys.map((k) => k.head))]);
  const nextOf = new Map(next.map((n) => [n.head, n.id]));
  const done = keys.filter((k) => !nextOf.has(k.head));
  if (done.length > 0) await tx.query(DROP, names(done));
  const passed = keys.flatMap((key) => {
    const id = nextOf.get(key.head);
    return id !== undefined && locked.has(id) ? [{ ...key, next: id }] : [];
  });
  const unblocked =
    passed.length === 0
      ? []
      : await tx.query<UntoldRow>(PASS_ON, [...names(passed), pgArray(passed.map((k) => k.next))]);
  return { unblocked, left: next.filter((n) => !locked.has(n.id)).map((n) => n.head) };
}

interface KeyRow {
  tenant: string;
  key: string;
  /** The job that has had its turn. */
  head: string;
}

const names = (keys: readonly KeyRow[]): [tenants: string, keys: string] => [
  pgTextArray(keys.map((k) => k.tenant)),
  pgTextArray(keys.map((k) => k.key)),
];
