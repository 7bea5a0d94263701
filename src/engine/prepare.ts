import { UnknownTask } from '../core/errors.ts';
import { newUuid } from '../core/ids.ts';
import { textProblem } from '../core/json.ts';
import type { TaskDefinition } from '../core/task.ts';
import { taskDefinition, taskNames } from '../db/reads/task-definitions.ts';
import type { NewJob } from '../db/transitions/submit.ts';
import type { Db, Executor } from '../db/types.ts';
import { registerQueues } from '../db/writes/registry.ts';
import { createJsonSchemaChecker } from './json-schema.ts';
import { newJob } from './new-job.ts';
import type { Caller, SubmitOptions, SubmitRequest } from './types.ts';

/** A registered definition is trusted this long: submits then cost one round trip, and a deployment is seen soon. */
const DEFINITION_TTL_MS = 1_000;

/**
 * Makes of a request, from whatever path it comes, a job that may be written: checked, completed from its task, its queue
 * known. @throws InvalidInput, UnknownTask, PayloadTooLarge
 */
export type Prepare = (caller: Caller, request: SubmitRequest, more?: SubmitOptions) => Promise<NewJob>;

export function createPrepare(db: Db, options: { maxInputBytes: number }): Prepare {
  const schemas = createJsonSchemaChecker();
  const known = new Map<string, { definition: TaskDefinition; until: number }>();
  const queues = new Set<string>();

  async function definitionOf(name: string, executor: Executor, path: string | undefined): Promise<TaskDefinition> {
    const cached = known.get(name);
    if (cached && cached.until > performance.now()) return cached.definition;
    const definition = textProblem(name) ? null : await taskDefinition(executor, name);
    if (!definition) {
      known.delete(name);
      throw new UnknownTask(name, await taskNames(executor), path);
    }
    known.set(name, { definition, until: performance.now() + DEFINITION_TTL_MS });
    return definition;
  }

  return async (caller, request, more = {}) => {
    const executor = more.tx ?? db;
    const task = more.definition ?? (await definitionOf(request.task, executor, more.path));
    const job = await newJob(caller, request, task, {
      path: more.path ?? '',
      maxInputBytes: options.maxInputBytes,
      schemas,
      inputSchema: more.inputSchema,
      links: more.links,
    });
    if (!queues.has(job.queue)) {
      await registerQueues(executor, [{ id: newUuid(), name: job.queue }]);
      // Within the caller's transaction the queue's row may yet be rolled back.
      if (!more.tx) queues.add(job.queue);
    }
    return job;
  };
}
