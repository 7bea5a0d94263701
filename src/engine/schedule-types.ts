import type { OverlapPolicy, ScheduleRow } from '../core/schedule.ts';
import type { StandardSchemaV1 } from '../core/standard-schema.ts';
import type { TaskDefinition } from '../core/task.ts';
import type { Caller, SubmitRequest, Submitted } from './types.ts';

/** What a client may say about a schedule, in stored units. Checked by the engine. */
export interface ScheduleRequest
  extends Pick<
    SubmitRequest,
    'task' | 'input' | 'title' | 'queue' | 'priority' | 'tags' | 'maxAttempts' | 'timeoutMs' | 'concurrencyKey'
  > {
  name: string;
  cron: string;
  /** Default UTC. */
  timezone?: string | null;
  /** Default true. */
  enabled?: boolean | null;
  /** Default SKIP. */
  overlap?: OverlapPolicy | null;
}

/** Verbs by which people and programs steer schedules. */
export interface SchedulesEngine {
  /**
   * Makes a schedule, or replaces the one of that name, which keeps its id. Its next time is found anew when cron or zone
   * changed; else it stays. A second call changes nothing. @throws InvalidInput, UnknownTask
   */
  save(
    caller: Caller,
    request: ScheduleRequest,
    options?: {
      /** Definition known in code: no look-up of the registered task. */
      definition?: TaskDefinition;
      /** Checks the input with the task's own schema in place of its JSON Schema. */
      inputSchema?: StandardSchemaV1 | undefined;
    },
  ): Promise<ScheduleRow>;
  /** Removes a schedule; its jobs stay. @throws NotFound */
  remove(caller: Caller, name: string): Promise<void>;
  /**
   * Submits a job of a schedule now, whatever its times, also while it is disabled or its last job runs. Each call makes
   * another. @throws NotFound, and as submit does when the input is no longer what the task takes
   */
  run(caller: Caller, name: string): Promise<Submitted>;
}
