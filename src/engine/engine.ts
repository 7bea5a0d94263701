import type { Database } from '../db/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import type { ArtifactPlaces } from './artifact-contents.ts';
import { type ArtifactsEngine, createArtifacts } from './artifacts.ts';
import { createClaimLimited } from './claim-limited.ts';
import { createControl } from './control.ts';
import { createExecution } from './execution.ts';
import { createFollowUps } from './follow-ups.ts';
import type { GraphsEngine } from './graph-types.ts';
import { createGraphs } from './graphs.ts';
import { createLimitedQueues } from './limited-queues.ts';
import { createMaintenance } from './maintenance.ts';
import { createPrepare } from './prepare.ts';
import type { QueuesEngine } from './queue-types.ts';
import { createQueues } from './queues.ts';
import { createSubmit } from './submit.ts';
import type { EngineOptions, ExecutionEngine, JobsEngine, MaintenanceEngine } from './types.ts';

/** The use cases: what clients, workers and maintenance may do. Holds no state that another process needs. */
export interface Engine {
  jobs: JobsEngine;
  graphs: GraphsEngine;
  queues: QueuesEngine;
  execution: ExecutionEngine;
  artifacts: ArtifactsEngine;
  maintenance: MaintenanceEngine;
}

export function createEngine(deps: {
  database: Database;
  channel: LiveChannel;
  options: EngineOptions;
  /** Default: contents of artifacts are kept in the database. */
  artifacts?: ArtifactPlaces | undefined;
}): Engine {
  const { database, channel, options } = deps;
  const followUps = createFollowUps(database, channel, options);
  const prepare = createPrepare(database.submit, { maxInputBytes: options.maxBytes.input });
  const limited = createLimitedQueues(database.work);
  const artifacts = createArtifacts(database, channel, deps.artifacts);
  return {
    jobs: {
      ...createSubmit(database, channel, options, { prepare, followUps }),
      ...createControl(database, channel, options, followUps),
    },
    graphs: createGraphs(database, channel, options, { prepare, followUps }),
    queues: createQueues(database, channel, limited),
    execution: {
      ...createExecution(database, channel, options, followUps),
      gathering: artifacts.gathering,
      storeArtifact: artifacts.store,
      claimLimited: createClaimLimited(database, channel, { leaseMs: options.leaseMs, limited }),
    },
    artifacts,
    maintenance: createMaintenance(database, channel, options, followUps, artifacts),
  };
}
