import type { JobChange } from '../../core/change.ts';
import type { TenantPulse } from '../../db/reads/live.ts';
import type { LiveChannel, Subscription } from '../../events/channel.ts';
import type { Readers } from './readers.ts';

/** A list that follows a tenant. */
export interface ListWatcher {
  onChanges(changes: readonly JobChange[]): void;
  /** Changes may have been missed. */
  reset(): void;
}

/** Where lists, graphs and others find the feeds that they share. */
export interface Feeds {
  join(tenant: string, watcher: ListWatcher): TenantFeed;
  leave(feed: TenantFeed, watcher: ListWatcher): void;
  readonly readers: Readers;
}

/** While the channel is down lists are told to read again at least this often, whatever the counters say. */
const RESET_ANYWAY_MS = 30_000;

/** The changes of a tenant's jobs: one subscription for all lists of this process. */
export class TenantFeed {
  readonly tenant: string;
  readonly #resetEveryMs: number;
  readonly #subscription: Subscription;
  readonly #watchers = new Set<ListWatcher>();
  #heard = false;
  #pulse: string | null = null;
  #due = false;
  #resetAt = performance.now();

  /** @param resetEveryMs while the channel is down lists are told to read again at most this often */
  constructor(channel: LiveChannel, tenant: string, resetEveryMs: number) {
    this.tenant = tenant;
    this.#resetEveryMs = resetEveryMs;
    this.#subscription = channel.onChanges(tenant, null, (changes) => {
      this.#heard = true;
      if (changes.length === 0) this.reset();
      else for (const watcher of this.#watchers) watcher.onChanges(changes);
    });
  }

  get ready(): Promise<void> {
    return this.#subscription.ready;
  }

  add(watcher: ListWatcher): void {
    this.#watchers.add(watcher);
  }

  /** Returns whether somebody is left. */
  remove(watcher: ListWatcher): boolean {
    return this.#watchers.delete(watcher) && this.#watchers.size > 0;
  }

  close(): void {
    this.#subscription.unsubscribe();
  }

  /** Changes may have been missed. */
  reset(): void {
    this.#due = false;
    this.#resetAt = performance.now();
    for (const watcher of this.#watchers) watcher.reset();
  }

  /**
   * What a poll found. A pulse that moved while nothing was heard means that messages were lost: their sender died
   * between its commit and its message, or the channel is down. Running jobs report progress, which no pulse shows.
   */
  onPulse({ pulse, running }: TenantPulse, state: 'live' | 'down'): void {
    const moved = this.#pulse !== null && this.#pulse !== pulse && !this.#heard;
    this.#pulse = pulse;
    this.#heard = false;
    if (state === 'live') {
      if (moved) this.reset();
      return;
    }
    const age = performance.now() - this.#resetAt;
    this.#due ||= moved || running > 0 || age >= RESET_ANYWAY_MS;
    if (this.#due && age >= this.#resetEveryMs) this.reset();
  }
}
