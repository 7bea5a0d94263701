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
    if (state === 'QUEUED' && fromState !== 'QUEUED') hints.set(`${queue}\n${task}`, { queue, task });
  }
  if (hints.size > 0) channel.publishReady([...hints.values()]);
}
