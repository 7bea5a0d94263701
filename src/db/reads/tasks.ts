import type { TaskDefinition } from '../../core/task.ts';
import { pgArray, pgTextArray } from '../sql.ts';
import type { Executor } from '../types.ts';

/** A registered task with the definition that counts now. */
export interface TaskRow {
  id: string;
  name: string;
  definition: TaskDefinition;
}

// The same choice as `task-definitions.ts` makes for submits: newest of a live worker, else newest of all.
const TASKS = (where: string) => `
select t.id, t.name, d.definition
from waymark.tasks t
cross join lateral (
  select d.definition from waymark.task_definitions d
  where d.name = t.name
  order by exists (
             select 1 from waymark.workers w
             where w.state <> 'LOST' and d.name = any(w.tasks) and w.task_digests ->> d.name = d.digest
           ) desc,
           d.registered_at desc
  limit 1
) d
${where}
order by t.name`;

const ALL = TASKS('');
const BY_NAMES = TASKS('where t.name = any($1::text::text[])');
const BY_IDS = TASKS('where t.id = any($1::text::uuid[])');

/** All registered tasks by name. */
export function allTasks(db: Executor): Promise<TaskRow[]> {
  return db.query<TaskRow>(ALL);
}

/** Tasks by name. */
export function tasksByNames(db: Executor, names: readonly string[]): Promise<TaskRow[]> {
  return db.query<TaskRow>(BY_NAMES, [pgTextArray(names)]);
}

/** Tasks by stored id. */
export function tasksByIds(db: Executor, ids: readonly string[]): Promise<TaskRow[]> {
  return db.query<TaskRow>(BY_IDS, [pgArray(ids)]);
}
