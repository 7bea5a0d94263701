import type { TaskDefinition } from '../../core/task.ts';
import type { Executor } from '../types.ts';

// The newest registration of a live worker wins; when no worker with it lives, the newest of all.
const DEFINITION = `
select d.definition
from waymark.task_definitions d
where d.name = $1
order by exists (
           select 1 from waymark.workers w
           where w.state <> 'LOST' and d.name = any(w.tasks) and w.task_digests ->> d.name = d.digest
         ) desc,
         d.registered_at desc
limit 1`;

/** The definition of a task that counts now, or null when nobody has registered it. */
export async function taskDefinition(db: Executor, name: string): Promise<TaskDefinition | null> {
  const [row] = await db.query<{ definition: TaskDefinition }>(DEFINITION, [name]);
  return row?.definition ?? null;
}

/** Names of all registered tasks, sorted. */
export async function taskNames(db: Executor): Promise<string[]> {
  return (await db.query<{ name: string }>('select name from waymark.tasks order by name')).map((r) => r.name);
}
