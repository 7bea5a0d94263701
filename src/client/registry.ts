import type { Jsonify } from '../core/json.ts';
import type { AnyTask, InputOf, ResultOf } from '../core/task.ts';

/**
 * How a client knows tasks without importing their handlers: by the type of the list, or of the module, that defines
 * them, as in `createClient<typeof import('./tasks.ts')>()`.
 */
type TasksOf<T> = unknown extends T
  ? AnyTask
  : T extends readonly (infer E)[]
    ? Extract<E, AnyTask>
    : Extract<T[keyof T] | (T extends { default: readonly (infer E)[] } ? E : never), AnyTask>;

/** Names of the tasks; any string when nothing is known of them. */
export type NameIn<T> = TasksOf<T>['name'] & string;

/** The task of a name. */
export type ByName<T, N> = string extends NameIn<T> ? AnyTask : Extract<TasksOf<T>, { name: N }>;

/** What `submit` takes for a task. */
export type InputIn<T, N> = InputOf<ByName<T, N>>;

/** What `result()` gives for a task: the JSON form of what its handler returned. */
export type ResultIn<T, N> = string extends NameIn<T> ? unknown : Jsonify<ResultOf<ByName<T, N>>>;
