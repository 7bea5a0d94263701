import { retryDelay } from '../core/backoff.ts';
import type { JobErrorData } from '../core/event.ts';
import { nextExpiry } from '../db/transitions/decide.ts';
import { nextDue, stage } from '../db/transitions/stage.ts';
import type { Database } from '../db/types.ts';
import { foldCounts, pruneBare, pruneKeys, pruneStats } from '../db/writes/prune.ts';
import { vacuumHotTables } from '../db/writes/vacuum.ts';
import {
  abandonedAttempts,
  forgetWorkers,
  markAllLost,
  markLost,
  type RescueRow,
  serverUptime,
  stuckAttempts,
} from '../db/writes/workers.ts';
import type { LiveChannel } from '../events/channel.ts';
import { expireApprovals } from './approvals.ts';
import type { Artifacts } from './artifacts.ts';
import { announce } from './commit.ts';
import type { FollowUps } from './follow-ups.ts';
import { createFamilyPruner } from './prune-families.ts';
import { createSinglePruner } from './prune-singles.ts';
import { settleFree, toInput } from './settle.ts';
import type { EngineOptions, MaintenanceEngine } from './types.ts';

const STAGE_BATCH = 500;
const RESCUE_BATCH = 200;
const PRUNE_BATCH = 500;
const EXPIRE_BATCH = 100;
const FOLD_BATCH = 5_000;
/** Rounds of one pass: what is left waits for the next, so that a backlog never holds up the other passes. */
const MAX_ROUNDS = 10;
const FORGET_WORKERS_MS = 24 * 3_600_000;
/** How often the embedded database is vacuumed; a server does that by itself. */
const VACUUM_EVERY_MS = 10 * 60_000;
/** For how long a pass that found no families to remove is believed. */
const NO_FAMILIES_MS = 5_000;
const KEEP_STATS_MS = 7 * 24 * 3_600_000;

/** The passes that keep the tables moving. Any number of processes may run them at once: every one skips locked rows. */
export function createMaintenance(
  database: Database,
  channel: LiveChannel,
  options: EngineOptions,
  followUps: FollowUps,
  artifacts: Pick<Artifacts, 'sweep' | 'clear'>,
): Omit<MaintenanceEngine, 'fire'> {
  const db = database.maintenance;
  const singles = createSinglePruner(db, options.retainMs);
  const families = createFamilyPruner(db, options.retainMs);
  let noFamiliesUntil = 0;
  let vacuumedAt = performance.now();
  /** A longer pause between two passes may have kept this process's own worker from beating, too. */
  const maxGapMs = Math.max(2 * options.sweepMs, (options.leaseMs * 2) / 3);
  /** Since when, and until when, this process has been in unbroken contact with Postgres. */
  let contact: { since: number; until: number } | null = null;

  async function inContactForALease(): Promise<boolean> {
    const upFor = await serverUptime(db);
    // Behind the answer: a question that had to wait for it, as for a Postgres that was away, was no contact. Nor has a
    // process that was stopped for a while seen anything meanwhile, whatever the clock says.
    const now = performance.now();
    if (!contact || now - contact.until > maxGapMs) contact = { since: now, until: now };
    contact.until = now;
    return now - contact.since >= options.leaseMs && upFor >= options.leaseMs;
  }

  async function rescueAbandoned(): Promise<number> {
    return drain(async () => settleAll(await abandonedAttempts(db, RESCUE_BATCH), outcomeOfLoss), RESCUE_BATCH);
  }

  /** Runs a bounded batch until it comes back short. */
  async function drain(batch: () => Promise<number>, size: number): Promise<number> {
    let total = 0;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const n = await batch();
      total += n;
      if (n < size) break;
    }
    return total;
  }

  async function settleAll(rows: RescueRow[], outcomeOf: (row: RescueRow) => RescueOutcome): Promise<number> {
    if (rows.length === 0) return 0;
    const settled = await settleFree(
      db,
      channel,
      followUps,
      rows.map((row) => {
        const outcome = outcomeOf(row);
        return toInput({
          jobId: row.jobId,
          attempt: row.attempt,
          outcome,
          error: rescueError(row, outcome),
          delayMs: retryDelay(row.backoff, row.failures + 1, Math.random()),
        });
      }),
    );
    for (const { workerId } of rows) channel.publishNudge(workerId);
    return settled;
  }

  return {
    async stage() {
      // A look is cheaper than a stage that finds nothing, which is what most passes are.
      const dueMs = await nextDue(db);
      if (dueMs === null || dueMs > 0) return { staged: 0, nextDueMs: dueMs };
      const staged = await drain(async () => {
        const rows = await stage(db, { priorityStepMs: options.priorityStepMs, limit: STAGE_BATCH });
        announce(channel, rows);
        return rows.length;
      }, STAGE_BATCH);
      return { staged, nextDueMs: await nextDue(db) };
    },

    async rescue() {
      try {
        // An outage must not burn anybody's budget: workers that could not beat get one whole lease to say so.
        if (!(await inContactForALease())) return { lostWorkers: 0, rescued: 0 };
        const lost = await markLost(db);
        for (const id of lost) channel.publishNudge(id);
        const rescued =
          (await rescueAbandoned()) +
          (await drain(
            async () => settleAll(await stuckAttempts(db, RESCUE_BATCH), () => 'NOT_ADVANCING'),
            RESCUE_BATCH,
          ));
        await forgetWorkers(db, FORGET_WORKERS_MS);
        return { lostWorkers: lost.length, rescued };
      } catch (error) {
        contact = null;
        throw error;
      }
    },

    async recover() {
      const lost = await markAllLost(db);
      await artifacts.clear();
      return { lostWorkers: lost.length, rescued: await rescueAbandoned() };
    },

    async followUp() {
      return { done: await followUps.sweep() };
    },

    async expire() {
      const dueMs = await nextExpiry(db);
      if (dueMs === null || dueMs > 0) return { expired: 0, nextDueMs: dueMs };
      const expired = await expireApprovals(database, channel, options, EXPIRE_BATCH);
      return { expired, nextDueMs: await nextExpiry(db) };
    },

    async prune() {
      const { pruned: single, more } = await singles.pass();
      let pruned = single;
      // Looking for them costs as much when there are none: a pass that comes again at once leaves it out then.
      if (!(more && performance.now() < noFamiliesUntil)) {
        const gone = await families.pass();
        noFamiliesUntil = gone > 0 ? 0 : performance.now() + NO_FAMILIES_MS;
        pruned += gone;
      }
      pruned += await drain(() => pruneKeys(db, PRUNE_BATCH), PRUNE_BATCH);
      pruned += await drain(() => pruneBare(db, options.retainMs.keys, PRUNE_BATCH), PRUNE_BATCH);
      await pruneStats(db, KEEP_STATS_MS);
      if (database.kind === 'embedded' && performance.now() - vacuumedAt > VACUUM_EVERY_MS) {
        vacuumedAt = performance.now();
        await vacuumHotTables(db);
      }
      // Last: a store of contents that is away must not keep the rest from being done.
      await artifacts.sweep();
      return { pruned };
    },

    async fold() {
      return { folded: await drain(() => foldCounts(db, FOLD_BATCH), FOLD_BATCH) };
    },
  };
}

type RescueOutcome = 'STALLED' | 'NOT_ADVANCING';

function outcomeOfLoss(row: RescueRow): RescueOutcome {
  return row.hung ? 'NOT_ADVANCING' : 'STALLED';
}

/** What is recorded when nobody is left to say why. A job that lost every worker it had is named for what it is. */
function rescueError(row: RescueRow, outcome: RescueOutcome): JobErrorData {
  const last = row.failures + 1 >= row.maxAttempts;
  const poison = outcome === 'STALLED' && last && row.stalls + 1 >= row.maxAttempts && row.maxAttempts > 1;
  return {
    code: poison ? 'POISON' : outcome,
    message: rescueMessage(row, outcome, poison),
    retryable: true,
    attempt: row.attempt,
    at: new Date().toISOString(),
  };
}

function rescueMessage(row: RescueRow, outcome: RescueOutcome, poison: boolean): string {
  if (poison) return `each of its ${row.maxAttempts} attempts lost its worker`;
  if (outcome === 'STALLED') return 'the lease of its worker was over';
  return row.hung
    ? 'the event loop of its worker was blocked for longer than WAYMARK_MAX_BLOCK'
    : 'no progress or checkpoint for longer than the task allows';
}
