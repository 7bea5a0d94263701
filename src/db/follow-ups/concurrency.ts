import { pgArray } from '../sql.ts';
import type { Executor } from '../types.ts';

const LOCK_KEYS = `
select k.tenant, k.key, k.head_job_id as head
from waymark.job_states e join waymark.concurrency_keys k
  on k.tenant = e.tenant and k.key = e.concurrency_key and k.head_job_id = e.id
where e.id = any($1::uuid[]) and e.finished_at is not null
order by k.tenant, k.key
for update of k`;

const NEXT = `
select k.head_job_id as head, n.id
from waymark.concurrency_keys k cross join lateral (
  select s.id from waymark.job_states s
  where s.blocked and s.tenant = k.tenant and s.concurrency_key = k.key and s.finished_at is null
  order by s.id limit 1
) n
where k.head_job_id = any($1::uuid[])`;

const PASS_ON = `
with i as (select * from unnest($1::uuid[], $2::uuid[]) as x(head, next)),
k as (update waymark.concurrency_keys k set head_job_id = i.next from i where k.head_job_id = i.head)
update waymark.job_states s set blocked = false, version = s.version + 1
from i where s.id = i.next
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
  const keys = await tx.query<{ head: string }>(LOCK_KEYS, [pgArray(ended)]);
  if (keys.length === 0) return { unblocked: [], left: [] };
  const heads = keys.map((k) => k.head);
  const next = await tx.query<{ head: string; id: string }>(NEXT, [pgArray(heads)]);
  const free = next.filter((n) => locked.has(n.id));
  const followed = new Set(next.map((n) => n.head));
  const done = heads.filter((head) => !followed.has(head));
  if (done.length > 0) {
    await tx.query('delete from waymark.concurrency_keys where head_job_id = any($1::uuid[])', [pgArray(done)]);
  }
  const unblocked =
    free.length === 0
      ? []
      : await tx.query<UntoldRow>(PASS_ON, [pgArray(free.map((n) => n.head)), pgArray(free.map((n) => n.id))]);
  return { unblocked, left: next.filter((n) => !locked.has(n.id)).map((n) => n.head) };
}
