import type { JobChange, ReadyHint } from '../core/change.ts';

/**
 * The live channel: tells other processes (and this one) to look now. Best effort: a message may be lost, repeated or
 * late; it is never the only place of a fact. Publishing never waits and never throws.
 */
export interface LiveChannel {
  /** Sends what one commit changed, one message per shard. */
  publishChanges(changes: readonly JobChange[]): void;
  /**
   * The same for rows whose changes are worth making only where somebody listens: `changesOf` is called for those rows,
   * if any. Where it seems that nobody does, listeners who are there after all are told to look.
   */
  publishRows<Row extends { id: string; tenant: string }>(
    rows: readonly Row[],
    changesOf: (rows: readonly Row[]) => readonly JobChange[],
  ): void;
  /** Tells workers that jobs became claimable. */
  publishReady(hints: readonly ReadyHint[]): void;
  /** Asks one worker to beat now: it has a cancel request to read. */
  publishNudge(workerId: string): void;

  /**
   * Listens to the changes of one job's shard (`shard`) or of all shards (`null`) of a tenant. Subscribers in this
   * process share one subscription of the store.
   */
  onChanges(tenant: string, shard: number | null, listener: ChangeListener): Subscription;
  onReady(listener: (hints: readonly ReadyHint[]) => void): Subscription;
  onNudge(workerId: string, listener: () => void): Subscription;

  /** Whether messages arrive now. In-process it is always live; over Redis, `down` means: poll. */
  readonly state: 'live' | 'down';
  /** Called at each change of `state`; on `live` messages may have been missed: look again. */
  onState(listener: (state: 'live' | 'down') => void): () => void;
  close(): Promise<void>;
}

/** An empty list says that jobs changed, but not which: look. */
export type ChangeListener = (changes: readonly JobChange[]) => void;

export interface Subscription {
  /** Resolves when messages sent from now on will arrive, or when the channel is down (then poll). Never rejects. */
  readonly ready: Promise<void>;
  /** Stops at once; a second call does nothing. */
  unsubscribe(): void;
}
