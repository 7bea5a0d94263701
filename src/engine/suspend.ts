import { suspend as suspendRow } from '../db/transitions/suspend.ts';
import type { Database } from '../db/types.ts';
import { type Announcer, announce } from './commit.ts';
import type { FollowUps } from './follow-ups.ts';
import { fateOfUnsettled } from './settle.ts';
import type { AttemptEnd, EngineOptions, SettleResult } from './types.ts';

/** Ends attempts that wait for people, time or children, each in a transaction of its own. */
export function createSuspend(
  database: Database,
  channel: Announcer,
  { priorityStepMs }: Pick<EngineOptions, 'priorityStepMs'>,
  followUps: Pick<FollowUps, 'after'>,
): (end: AttemptEnd) => Promise<SettleResult> {
  const db = database.work;
  return async ({ jobId, attempt, wait, progress }) => {
    if (!wait) throw new Error('an attempt that is SUSPENDED says what it waits for');
    const digest = `SUSPENDED:${wait.kind}:${wait.kind === 'REVIEW' ? wait.approvalIds.join() : wait.detail}`;
    const rows = await db.transaction((tx) =>
      suspendRow(tx, {
        jobId,
        attempt,
        digest,
        kind: wait.kind,
        detail: wait.detail,
        approvalIds: wait.kind === 'REVIEW' ? wait.approvalIds : [],
        sleeps: wait.kind === 'SLEEP' ? wait.sleeps : [],
        progress: progress ? JSON.stringify(progress) : null,
        priorityStepMs,
      }),
    );
    announce(channel, rows);
    void followUps.after(rows);
    const last = rows.at(-1);
    if (last) return { status: 'settled', state: last.state };
    const fate = await fateOfUnsettled(db, { jobId, attempt, digest });
    return fate === 'held' ? { status: 'lost' } : fate;
  };
}
