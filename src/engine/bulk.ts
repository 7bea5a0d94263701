import { upstreamsFirst } from '../core/dependency.ts';
import { CountChanged, InvalidInput, Unavailable } from '../core/errors.ts';
import type { Logger } from '../core/log.ts';
import { type JobState, TRANSITIONS } from '../core/state.ts';
import { lockJobs } from '../db/follow-ups/take.ts';
import {
  type BulkTarget,
  childrenOfAll,
  countTarget,
  edgesAmong,
  idsOfTarget,
  stillInTarget,
} from '../db/reads/bulk.ts';
import type { JobFilter } from '../db/reads/job-filter.ts';
import { replacedAmong } from '../db/reads/left-behind.ts';
import { cancel } from '../db/transitions/cancel.ts';
import { retry } from '../db/transitions/retry.ts';
import type { Database, Tx } from '../db/types.ts';
import type { LiveChannel } from '../events/channel.ts';
import type { BulkEngine, BulkOptions, BulkOutcome } from './bulk-types.ts';
import { type ChangedRow, tell } from './commit.ts';
import { checkReason } from './control.ts';
import type { FollowUps } from './follow-ups.ts';
import { cancelLeftBehind } from './left-behind.ts';
import type { Caller, EngineOptions } from './types.ts';

/** Jobs of one call at most. */
export const MAX_BULK_JOBS = 10_000;
/** Jobs of one transaction. */
const AT_ONCE = 1_000;

/** What one transaction did, to be told after its commit. */
interface Done {
  changed: number;
  rows: ChangedRow[];
}

/** Does the verb on locked jobs that match. */
type Act = (tx: Tx, ids: readonly string[]) => Promise<Done>;

export function createBulk(
  database: Database,
  channel: LiveChannel,
  options: EngineOptions,
  followUps: FollowUps,
  log: Logger,
): BulkEngine {
  /** @param replaced jobs in whose place others of the call submit new ones stay as they are */
  async function run(
    caller: Caller,
    target: BulkTarget,
    { expectedCount = null, dryRun = false, replaced = false }: BulkOptions & { replaced?: boolean },
    work: (ids: readonly string[]) => Promise<Done>,
  ): Promise<BulkOutcome> {
    const { matched, open } = await countTarget(database.read, caller.tenant, target);
    if (expectedCount !== null && expectedCount !== matched) throw new CountChanged(expectedCount, matched);
    if (dryRun || open === 0) return { matched, changed: 0, remaining: open };
    const found = await idsOfTarget(database.read, caller.tenant, target, MAX_BULK_JOBS);
    const left = replaced ? await replacedAmong(database.read, found) : new Set();
    const ids = upstreamsFirst(found, await edgesAmong(database.read, found)).filter((id) => !left.has(id));
    const told: string[] = [];
    let changed = 0;
    try {
      for (let i = 0; i < ids.length; i += AT_ONCE) {
        for (const done of await eachOrAll(ids.slice(i, i + AT_ONCE), work)) {
          changed += done.changed;
          told.push(...tell(channel, done.rows));
        }
      }
    } finally {
      // In the end: what follows from one of these jobs would change others before their turn comes.
      if (told.length > 0) await followUps.soon(told);
    }
    return { matched, changed, remaining: Math.max(0, open - found.length) };
  }

  /** One transaction; where it fails, one for each of its jobs, so that a bad one does not stop the others. */
  async function eachOrAll(ids: readonly string[], work: (ids: readonly string[]) => Promise<Done>): Promise<Done[]> {
    try {
      return [await work(ids)];
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      if (ids.length === 1) {
        log.warn({ err: error, jobId: ids[0] }, 'a job of a bulk call could not be changed; the others go on');
        return [];
      }
    }
    const done: Done[] = [];
    for (const id of ids) done.push(...(await eachOrAll([id], work)));
    return done;
  }

  /**
   * Locks these jobs, in one round and in the order of their ids, and does the verb on those that still match.
   * @param more others that the verb writes
   */
  function locked(caller: Caller, target: BulkTarget, act: Act, more: readonly string[] = []) {
    return (ids: readonly string[]): Promise<Done> =>
      database.submit.transaction(async (tx) => {
        const there = await lockJobs(tx, [...new Set([...ids, ...more])], true);
        const still = await stillInTarget(tx, caller.tenant, target, [...there.keys()]);
        const matching = ids.filter((id) => still.has(id));
        return matching.length === 0 ? { changed: 0, rows: [] } : act(tx, matching);
      });
  }

  return {
    async cancelJobs(caller, filter, more = {}) {
      checkFilter(filter);
      const reason = more.reason ?? null;
      checkReason(reason);
      const { tenant, actor } = caller;
      const target = { filter, states: among(TRANSITIONS.cancel.from, filter.states), notAsked: true };
      const act: Act = async (tx, ids) => {
        const rows = await cancel(tx, ids, { tenant, actor, reason, expectedRun: null, cascade: true });
        return { changed: rows.length, rows };
      };
      return run(caller, target, more, locked(caller, target, act));
    },

    async retryJobs(caller, filter, more = {}) {
      checkFilter(filter);
      const reason = more.reason ?? null;
      checkReason(reason);
      const { tenant, actor } = caller;
      const fromStart = more.fromStart ?? false;
      const states =
        filter.states == null ? (['FAILED', 'CANCELED'] as const) : among(TRANSITIONS.retry.from, filter.states);
      const target = { filter, states, notAsked: false };
      const by = {
        tenant,
        actor,
        expectedRun: null,
        fromStart,
        fromCheckpoint: null,
        reason: reason ?? 'retry',
        priorityStepMs: options.priorityStepMs,
      };
      return run(caller, target, { ...more, replaced: fromStart }, async (ids) => {
        // Children that run again with their parents are locked in the same round.
        const children = fromStart ? new Map<string, string[]>() : await childrenOfAll(database.read, ids);
        const act: Act = async (tx, matching) => {
          const rows = await retry(
            tx,
            matching,
            matching.flatMap((id) => children.get(id) ?? []),
            by,
          );
          const retried = new Set(rows.map((row) => row.id));
          const left = fromStart ? await cancelLeftBehind(tx, [...retried], actor) : [];
          return { changed: matching.filter((id) => retried.has(id)).length, rows: [...rows, ...left] };
        };
        return locked(caller, target, act, [...children.values()].flat())(ids);
      });
    },
  };
}

function among(from: readonly JobState[], named: readonly JobState[] | null | undefined): JobState[] {
  return from.filter((state) => named == null || named.includes(state));
}

/** @throws InvalidInput for a filter that would match everything */
function checkFilter(filter: JobFilter): void {
  const narrows = Object.entries(filter).some(([field, value]) => value != null && !(field === 'text' && value === ''));
  if (narrows) return;
  throw new InvalidInput([{ path: 'filter', message: 'must say which jobs; all of them at once is never meant' }]);
}
