import { toChanges } from '../db/changes.ts';
import { type LimitedLine, limitedLines } from '../db/reads/queue-limits.ts';
import { type ClaimRow, startedChange } from '../db/transitions/claim.ts';
import { claimLimited, lockLimited } from '../db/transitions/claim-limited.ts';
import type { Database } from '../db/types.ts';
import type { Announcer } from './commit.ts';
import type { LimitedQueues } from './limited-queues.ts';
import type { ExecutionEngine, LimitedClaim } from './types.ts';

/** Nobody looks more often, however fast a rate limit is: what has become free by then is started together. */
const SHORTEST_LOOK_MS = 10;
/** From one vain try to the next, doubled each time: whoever holds the row of a queue may be frozen. */
const LONGEST_RETRY_MS = 160;

const NOTHING: LimitedClaim = { jobs: [], full: [], lookAgainMs: null };

/**
 * Claims from queues with limits. First a look, which locks nothing: mostly a limit is used up, or nothing waits, and then
 * it ends there. Only where something is free its queue is locked and claimed from, and looked at once more to know what
 * keeps the rest.
 */
export function createClaimLimited(
  database: Database,
  channel: Announcer,
  limited: LimitedQueues,
): ExecutionEngine['claimLimited'] {
  const db = database.work;
  /** How often in a row nothing was got where something was free: others were claiming at the same moment. */
  let vain = 0;

  return async (workerId, request) => {
    const { queues, tasks, limit } = request;
    const names = (await limited.names()).filter((name) => queues === null || queues.includes(name));
    if (names.length === 0) return NOTHING;
    let lines = await limitedLines(db, names, tasks);
    let jobs: ClaimRow[] = [];
    const free = lines.filter((line) => line.room > 0).map((line) => line.name);
    if (free.length > 0) {
      jobs = await db.transaction(async (tx) => {
        const locked = await lockLimited(tx, free.slice(0, limit));
        return locked.length === 0 ? [] : claimLimited(tx, workerId, { queues: locked, tasks, limit });
      });
      channel.publishRows(jobs, (heard) => toChanges(heard.map((row) => startedChange(row, workerId))));
      lines = await limitedLines(db, names, tasks);
    }
    vain = jobs.length === 0 && free.length > 0 ? vain + 1 : 0;
    return {
      jobs,
      full: lines.filter((line) => line.full).map((line) => line.name),
      // Who got all he asked for comes again when he can take more.
      lookAgainMs: jobs.length >= limit ? null : lookAgainMs(lines, vain),
    };
  };
}

function lookAgainMs(lines: readonly LimitedLine[], vain: number): number | null {
  const waits = lines
    .filter((line) => !line.full && line.nextStartMs !== null)
    .map((line) => Math.max(Math.ceil(line.nextStartMs ?? 0), SHORTEST_LOOK_MS));
  // Others held the queue, or ended a job behind the claim, counting on nobody but themselves to see that.
  if (lines.some((line) => line.room > 0)) {
    const longest = Math.min(SHORTEST_LOOK_MS * 2 ** vain, LONGEST_RETRY_MS);
    // Those who met once would else meet again.
    waits.push(longest * (0.5 + Math.random() / 2));
  }
  return waits.length === 0 ? null : Math.min(...waits);
}
