import type { Database } from '../db/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import { createControl } from './control.ts';
import { createExecution } from './execution.ts';
import { createMaintenance } from './maintenance.ts';
import { createSubmit } from './submit.ts';
import type { EngineOptions, ExecutionEngine, JobsEngine, MaintenanceEngine } from './types.ts';

/** The use cases: what clients, workers and maintenance may do. Holds no state that another process needs. */
export interface Engine {
  jobs: JobsEngine;
  execution: ExecutionEngine;
  maintenance: MaintenanceEngine;
}

export function createEngine(deps: { database: Database; channel: LiveChannel; options: EngineOptions }): Engine {
  const { database, channel, options } = deps;
  return {
    jobs: { ...createSubmit(database, channel, options), ...createControl(database, channel, options) },
    execution: createExecution(database, channel, options),
    maintenance: createMaintenance(database, channel, options),
  };
}
