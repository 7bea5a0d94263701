import { type Logger, silentLogger } from '../core/log.ts';
import type { Database } from '../db/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import type { ApprovalsEngine } from './approval-types.ts';
import { createApprovals } from './approvals.ts';
import type { ArtifactPlaces } from './artifact-contents.ts';
import type { ArtifactsEngine } from './artifact-types.ts';
import { createArtifacts } from './artifacts.ts';
import { createBulk } from './bulk.ts';
import type { BulkEngine } from './bulk-types.ts';
import { createClaimLimited } from './claim-limited.ts';
import { createControl } from './control.ts';
import { createExecution } from './execution.ts';
import { createFollowUps } from './follow-ups.ts';
import { createFromHandler } from './from-handler.ts';
import type { GraphsEngine } from './graph-types.ts';
import { createGraphs } from './graphs.ts';
import { createLimitedQueues } from './limited-queues.ts';
import { createMaintenance } from './maintenance.ts';
import { createPrepare } from './prepare.ts';
import type { QueuesEngine } from './queue-types.ts';
import { createQueues } from './queues.ts';
import type { SchedulesEngine } from './schedule-types.ts';
import { createScheduleVerbs } from './schedule-verbs.ts';
import { createFiring } from './schedules.ts';
import { createSubmit } from './submit.ts';
import type { EngineOptions, ExecutionEngine, JobsEngine, MaintenanceEngine } from './types.ts';

/** The use cases: what clients, workers and maintenance may do. Holds no state that another process needs. */
export interface Engine {
  jobs: JobsEngine;
  graphs: GraphsEngine;
  bulk: BulkEngine;
  approvals: ApprovalsEngine;
  queues: QueuesEngine;
  execution: ExecutionEngine;
  artifacts: ArtifactsEngine;
  schedules: SchedulesEngine;
  maintenance: MaintenanceEngine;
}

export function createEngine(deps: {
  database: Database;
  channel: LiveChannel;
  options: EngineOptions;
  /** Default: contents of artifacts are kept in the database. */
  artifacts?: ArtifactPlaces | undefined;
  /** Where it is told what went wrong and stopped nothing. Default: nowhere. */
  log?: Logger | undefined;
}): Engine {
  const { database, channel, options } = deps;
  const followUps = createFollowUps(database, channel, options);
  const prepare = createPrepare(database.submit, { maxInputBytes: options.maxBytes.input });
  const limited = createLimitedQueues(database.work);
  const artifacts = createArtifacts(database, channel, deps.artifacts);
  const submits = createSubmit(database, channel, options, { prepare, followUps });
  return {
    jobs: {
      ...submits,
      ...createControl(database, channel, options, followUps),
    },
    bulk: createBulk(database, channel, options, followUps, deps.log ?? silentLogger),
    graphs: createGraphs(database, channel, options, { prepare, followUps }),
    approvals: createApprovals(database, channel, options),
    queues: createQueues(database, channel, limited),
    execution: {
      ...createExecution(database, channel, options, followUps),
      gathering: artifacts.gathering,
      storeArtifact: artifacts.store,
      ...createFromHandler(database, channel, options, { prepare, followUps }),
      claimLimited: createClaimLimited(database, channel, limited),
    },
    artifacts,
    schedules: createScheduleVerbs(database, { prepare, submit: submits.submit }),
    maintenance: {
      ...createMaintenance(database, channel, options, followUps, artifacts),
      ...createFiring(database, submits.submit, deps.log ?? silentLogger),
    },
  };
}
