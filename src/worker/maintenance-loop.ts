import type { Logger } from '../core/log.ts';
import type { MaintenanceEngine } from '../engine/types.ts';
import { PassLoop } from './pass-loop.ts';
import { detached, jittered, settledWithin } from './timing.ts';

export interface MaintenanceParts {
  maintenance: Pick<MaintenanceEngine, 'stage' | 'fire' | 'expire' | 'rescue' | 'followUp' | 'fold' | 'prune'>;
  log: Logger;
  sweepMs: number;
  pollMs: number;
}

/** Keeps the tables moving. Any number of processes may do it at once. */
export interface MaintenanceLoop {
  /** Every pass begins at once. A second call does nothing; after a stop it begins anew. */
  start(): void;
  /** Resolves when the passes under way are over, or after a second. Never rejects; a second call does the same. */
  stop(): Promise<void>;
}

/** How long `stop` waits for the passes under way. */
const STOP_MS = 1_000;
/** A due time that another process is just staging must not be asked for without a pause. */
const MIN_STAGE_WAIT_MS = 5;
/** A pass that removed so many has likely left some: a busy system finishes more in a sweep than one pass removes. */
const MUCH = 500;
const BACKLOG_MS = 50;
/** After an outage everything is looked at again this soon. */
const MAX_ERROR_WAIT_MS = 5_000;

/** Staging and schedules with the poll and at the next due time; rescue, folding and pruning with the sweep, each at its own pace. */
export function createMaintenanceLoop({ maintenance, log, sweepMs, pollMs }: MaintenanceParts): MaintenanceLoop {
  const maxWaitMs = Math.min(MAX_ERROR_WAIT_MS, Math.max(sweepMs, 250));
  /** @param pass resolves with the wait until the next */
  const loop = (doing: string, pass: () => Promise<number>): PassLoop => new PassLoop({ doing, maxWaitMs, log, pass });
  const loops = [
    loop('stage due jobs', async () => stageWait(await maintenance.stage(), pollMs)),
    loop('fire schedules', async () => stageWait(await maintenance.fire(), pollMs)),
    loop('end overdue approvals', async () => stageWait(await maintenance.expire(), sweepMs)),
    loop('rescue jobs of lost workers', () => maintenance.rescue().then(() => jittered(sweepMs))),
    loop('carry out follow-ups', () => maintenance.followUp().then(() => jittered(sweepMs))),
    loop('fold counts', () => maintenance.fold().then(() => jittered(sweepMs))),
    loop('prune finished jobs', async () => pruneWait(await maintenance.prune(), sweepMs)),
  ];
  return {
    start() {
      detached(() => {
        for (const loop of loops) loop.start();
      });
    },
    async stop() {
      // A pass may be cut at any point, and may wait for a store that is away: others, or the next start, go on with it.
      await settledWithin(Promise.all(loops.map((loop) => loop.stop())), STOP_MS);
    },
  };
}

/** The next sweep, or soon when there is likely more. */
function pruneWait({ pruned }: { pruned: number }, sweepMs: number): number {
  return pruned >= MUCH ? Math.min(BACKLOG_MS, sweepMs) : jittered(sweepMs);
}

/** Until the next due time, and never longer than the poll: a job that becomes due sooner may be submitted meanwhile. */
function stageWait({ nextDueMs }: { nextDueMs: number | null }, pollMs: number): number {
  const poll = jittered(pollMs);
  return nextDueMs === null ? poll : Math.min(poll, Math.max(MIN_STAGE_WAIT_MS, nextDueMs));
}
