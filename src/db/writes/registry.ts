import { pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';

// A repeated registration of the same definition makes it the newest again: a rolled-back deployment wins by starting.
// One that is the newest already is left alone: in a caller's transaction its lock would hold up everybody who submits
// that task until the commit.
const REGISTER_TASKS = `
with i as (
  select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as x(id, name, digest, definition)
),
n as (
  insert into waymark.tasks (name, id) select i.name, i.id from i order by i.name on conflict (name) do nothing
)
insert into waymark.task_definitions (name, digest, definition, registered_at)
select i.name, i.digest, i.definition::json, clock_timestamp() from i
where not exists (
  select 1 from waymark.task_definitions d
  where d.name = i.name and d.digest = i.digest and not exists (
    select 1 from waymark.task_definitions x where x.name = d.name and x.registered_at > d.registered_at))
order by i.name, i.digest
on conflict (name, digest) do update set registered_at = excluded.registered_at`;

/** Makes task definitions known to every API. `id` is used only where the name is new. */
export async function registerTasks(
  db: Executor,
  tasks: readonly { id: string; name: string; digest: string; definition: string }[],
): Promise<void> {
  if (tasks.length === 0) return;
  await db.query(REGISTER_TASKS, [
    pgTextArray(tasks.map((t) => t.id)),
    pgTextArray(tasks.map((t) => t.name)),
    pgTextArray(tasks.map((t) => t.digest)),
    pgTextArray(tasks.map((t) => t.definition)),
  ]);
}

const REGISTER_QUEUES = `
insert into waymark.queues (name, id, created_at)
select x.name, x.id, clock_timestamp() from unnest($1::text[], $2::uuid[]) as x(name, id) order by x.name
on conflict (name) do nothing`;

/** A queue exists once something has named it. */
export async function registerQueues(db: Executor, queues: readonly { id: string; name: string }[]): Promise<void> {
  if (queues.length === 0) return;
  await db.query(REGISTER_QUEUES, [pgTextArray(queues.map((q) => q.name)), pgTextArray(queues.map((q) => q.id))]);
}
