import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { WaymarkError } from '../core/errors.ts';
import { type AnyTask, isTask } from '../core/task.ts';
import type { UserDb } from '../db/types.ts';

/** What a tasks file gives. */
export interface TasksModule {
  tasks: AnyTask[];
  /** The user's own tables; to be run at each start, under the migration lock. */
  setup: ((context: { db: UserDb }) => unknown) | undefined;
}

const modules = new WeakMap<AnyTask, string>();

/** The path of the file that exports the task, as far as it is known. */
export function moduleOf(task: AnyTask): string | undefined {
  return modules.get(task) ?? task.module;
}

/** A tasks file that cannot be used; the message says why. */
export class InvalidTasksFile extends WaymarkError {
  readonly code = 'INVALID_TASKS_FILE';
}

/**
 * Loads a user's tasks file, JavaScript or TypeScript: tasks exported by name, or in a default array.
 * @param file a path, relative to the working directory
 * @throws InvalidTasksFile when it is missing, cannot be loaded, exports no task, or two of one name
 */
export async function loadTasks(file: string): Promise<TasksModule> {
  const path = resolve(file);
  if (!existsSync(path)) throw new InvalidTasksFile(`tasks file ${path} does not exist`);
  const module = exportsOf(await importModule(path));
  const tasks = tasksOf(module);
  if (tasks.length === 0) {
    throw new InvalidTasksFile(
      `tasks file ${path} exports no task; export what defineTask returns, by name or in a default array`,
    );
  }
  for (const task of tasks) modules.set(task, path);
  const names = tasks.map((task) => task.name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new InvalidTasksFile(`tasks file ${path} exports two tasks named ${JSON.stringify(twice)}`);
  const { setup } = module;
  if (setup !== undefined && typeof setup !== 'function') {
    throw new InvalidTasksFile(`tasks file ${path} exports "setup", which must be a function`);
  }
  return { tasks, setup: setup as TasksModule['setup'] };
}

async function importModule(path: string): Promise<Record<string, unknown>> {
  const url = pathToFileURL(path).href;
  try {
    return (await import(url)) as Record<string, unknown>;
  } catch (error) {
    if (!needsTypeScript(error)) throw notLoadable(path, error);
  }
  try {
    const { tsImport } = await import('tsx/esm/api');
    return (await tsImport(url, import.meta.url)) as Record<string, unknown>;
  } catch (error) {
    throw notLoadable(path, error);
  }
}

/** What Node says of TypeScript when this process has no loader for it, or only one that strips plain types. */
function needsTypeScript(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === 'ERR_UNKNOWN_FILE_EXTENSION' || code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX';
}

function notLoadable(path: string, cause: unknown): InvalidTasksFile {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new InvalidTasksFile(`tasks file ${path} could not be loaded: ${why}`, { cause });
}

/** In a project without `"type": "module"` a file is CommonJS: what it exports is then, also or only, in `default`. */
function exportsOf(module: Record<string, unknown>): Record<string, unknown> {
  const inner = module.default;
  if (typeof inner !== 'object' || inner === null || Array.isArray(inner) || isTask(inner)) return module;
  const { default: _, ...named } = module;
  return { ...(inner as Record<string, unknown>), ...named };
}

/** Each task once, also when it is exported by name and in the default array. */
function tasksOf(module: Record<string, unknown>): AnyTask[] {
  const { default: list, ...named } = module;
  const exported = [...(Array.isArray(list) ? list : [list]), ...Object.values(named)];
  return [...new Set(exported.filter(isTask))];
}
