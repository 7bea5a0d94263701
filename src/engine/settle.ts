import { setTimeout as sleep } from 'node:timers/promises';
import { Unavailable } from '../core/errors.ts';
import type { ChangeRow } from '../db/changes.ts';
import { type SettleInput, settle as settleRows, type UnsettledRow, unsettled } from '../db/transitions/settle.ts';
import type { Db } from '../db/types.ts';
import { createBatcher } from './batcher.ts';
import { type Announcer, announce } from './commit.ts';
import type { FollowUps } from './follow-ups.ts';
import type { AttemptEnd, SettleResult } from './types.ts';

type After = Pick<FollowUps, 'after'>;

/** About as long as a claim takes. */
const HELD_MS = 15;

/** Ends attempts. Those that end within a few milliseconds share a transaction; each learns its own fate after the commit. */
export function createSettle(db: Db, channel: Announcer, followUps: After): (end: AttemptEnd) => Promise<SettleResult> {
  const together = createBatcher<SettleInput, SettleResult>((ends) => settleBatch(db, channel, followUps, ends), {
    maxSize: 250,
    parallel: 2,
    isShared: (e) => e instanceof Unavailable,
  });
  return (end) => together.add(toInput(end));
}

/**
 * Settles many attempts in one statement. The fate of one whose row somebody else holds is a promise: it is settled
 * behind the others, while its neighbours have their answer.
 */
export async function settleBatch(
  db: Db,
  channel: Announcer,
  followUps: After,
  ends: readonly SettleInput[],
): Promise<(SettleResult | Promise<SettleResult>)[]> {
  const fates = await settleOnce(db, channel, followUps, ends, false);
  const held = ends.filter((_, i) => fates[i] === 'held');
  const later = settleHeld(db, channel, followUps, held);
  return fates.map((fate) => (fate === 'held' ? (later.shift() as Promise<SettleResult>) : fate));
}

/**
 * Several rows at once are mostly held by a claim, which looks at rows that another has just taken, and lets go of them
 * all in a moment: a statement for each would take longer. What is still held then is waited for, each by itself.
 */
function settleHeld(
  db: Db,
  channel: Announcer,
  followUps: After,
  held: readonly SettleInput[],
): Promise<SettleResult>[] {
  const alone = (end: SettleInput) => settleAlone(db, channel, followUps, end);
  if (held.length < 2) return held.map(alone);
  const again = sleep(HELD_MS)
    .then(() => settleOnce(db, channel, followUps, held, false))
    .catch((error): [] => {
      if (error instanceof Unavailable) throw error;
      return [];
    });
  return held.map(async (end, i) => {
    const fate = (await again)[i];
    return fate === undefined || fate === 'held' ? alone(end) : fate;
  });
}

/**
 * The same for those whose rows are free; whoever else would have to be waited for stays as it is. For the sweep, which
 * comes round again: a row that a frozen process holds must not keep it from all others. Returns how many it settled.
 */
export async function settleFree(
  db: Db,
  channel: Announcer,
  followUps: After,
  ends: readonly SettleInput[],
): Promise<number> {
  const fates = await settleOnce(db, channel, followUps, ends, false);
  return fates.filter((fate) => fate !== 'held' && fate.status === 'settled').length;
}

async function settleAlone(db: Db, channel: Announcer, followUps: After, end: SettleInput): Promise<SettleResult> {
  const [fate] = await settleOnce(db, channel, followUps, [end], true);
  // Held while waiting for it cannot be: the wait ends with the row, or with the attempt's ownership gone.
  return fate === 'held' || fate === undefined ? { status: 'lost' } : fate;
}

async function settleOnce(
  db: Db,
  channel: Announcer,
  followUps: After,
  ends: readonly SettleInput[],
  wait: boolean,
): Promise<(SettleResult | 'held')[]> {
  const rows = await settleRows(db, ends, wait);
  announce(channel, rows);
  // Not waited for: the attempts have ended, whatever follows.
  void followUps.after(rows);
  // Of one job at most one attempt can have owned it.
  const settled = new Map(rows.map((row) => [row.id, row]));
  const isSettled = (end: SettleInput) => settled.get(end.jobId)?.attempt === end.attempt;
  const missing = ends.filter((end) => !isSettled(end));
  const recorded = new Map(
    (missing.length > 0 ? await unsettled(db, missing) : []).map((row) => [`${row.jobId}/${row.attempt}`, row]),
  );
  return ends.map((end) => {
    if (isSettled(end)) return { status: 'settled', state: (settled.get(end.jobId) as ChangeRow).state };
    return fateOf(recorded.get(`${end.jobId}/${end.attempt}`), end.digest);
  });
}

/** What became of an end that changed nothing: it was recorded by an earlier call, its row is held, or the job is another's. */
function fateOf(row: UnsettledRow | undefined, digest: string): SettleResult | 'held' {
  if (row?.owns) return 'held';
  if (row?.outcome && row.digest === digest) return { status: 'repeated', state: row.state };
  return { status: 'lost' };
}

/** The same for one end. */
export async function fateOfUnsettled(
  db: Db,
  end: { jobId: string; attempt: number; digest: string },
): Promise<SettleResult | 'held'> {
  return fateOf((await unsettled(db, [end]))[0], end.digest);
}

/** A job that was handed back too often in a row counts as stalled; who hands it back says no time for that. */
const HANDED_BACK_TOO_OFTEN_MS = 10_000;

/** The stored form of how an attempt ended. */
export function toInput(end: AttemptEnd): SettleInput {
  return {
    jobId: end.jobId,
    attempt: end.attempt,
    outcome: end.outcome,
    digest: `${end.outcome}:${end.resultDigest ?? end.error?.code ?? ''}`,
    result: end.result ?? null,
    resultDigest: end.resultDigest ?? null,
    error: end.error ? JSON.stringify({ ...end.error, stack: undefined }) : null,
    fullError: end.error ? JSON.stringify(end.error) : null,
    retryable: end.error?.retryable ?? true,
    delayMs:
      end.delayMs ?? (end.outcome === 'RELEASED' || end.outcome === 'CANCELED' ? HANDED_BACK_TOO_OFTEN_MS : null),
    reason: end.reason ?? null,
    forced: end.forced ?? false,
    progress: end.progress ? JSON.stringify(end.progress) : null,
  };
}
