import type { ReadyHint } from '../core/change.ts';
import { type ChangeRow, toChanges } from '../db/changes.ts';
import type { LiveChannel } from '../events/channel.ts';

/** As much of the live channel as a commit needs. */
export type Announcer = Pick<LiveChannel, 'publishChanges' | 'publishRows' | 'publishReady'>;

/**
 * Tells everybody what a commit changed: watchers by the channel, workers where work became claimable. To be called
 * after COMMIT and never before. It never fails: what a lost message would have said is found by reading.
 */
export function announce(channel: Announcer, rows: readonly ChangeRow[]): void {
  if (rows.length === 0) return;
  channel.publishRows(rows, toChanges);
  const hints = new Map<string, ReadyHint>();
  for (const { state, fromState, queue, task } of rows) {
    if (state !== 'QUEUED' || fromState === 'QUEUED') continue;
    // Handed back: it keeps its place. Whatever else becomes QUEUED mostly takes one of about this moment.
    const ahead = fromState === 'RUNNING';
    const key = `${queue}\n${task}`;
    if (ahead || !hints.has(key)) hints.set(key, ahead ? { queue, task, ahead } : { queue, task });
  }
  if (hints.size > 0) channel.publishReady([...hints.values()]);
}

/** A change, and where a handler of the job is to be told, its worker. */
export type ChangedRow = ChangeRow & { workerId?: string | null };

/** `announce`, and a word to the workers that are concerned. Returns the jobs of which something follows. */
export function tell(channel: Announcer & Pick<LiveChannel, 'publishNudge'>, rows: readonly ChangedRow[]): string[] {
  announce(channel, rows);
  for (const workerId of new Set(rows.map((row) => row.workerId))) if (workerId) channel.publishNudge(workerId);
  return rows.filter((row) => row.followed || row.state === 'DEFERRED').map((row) => row.id);
}
