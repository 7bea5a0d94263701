import type { JobChange } from '../../core/change.ts';
import { Unavailable } from '../../core/errors.ts';
import type { JobRow } from '../../core/job.ts';
import { AWAY_MS, Pace } from './pace.ts';
import { DONE, NOTHING, type Polled, type Source } from './pull.ts';
import type { Readers } from './readers.ts';
import type { ListWatcher, TenantFeed } from './tenant-feed.ts';
import type { ChangeFilter, JobsChanged } from './types.ts';

/** Where lists find the feeds that they share. */
export interface Feeds {
  join(tenant: string, watcher: ListWatcher): TenantFeed;
  leave(feed: TenantFeed, watcher: ListWatcher): void;
  readonly readers: Readers;
}

/**
 * Changes of a tenant's jobs for a list: gathered between two messages, each job once, its row read when the message is
 * due. Too many changes, or changes that may have been missed, become a reset.
 */
export class JobsSource implements Source<JobsChanged>, ListWatcher {
  readonly #feeds: Feeds;
  readonly #tenant: string;
  readonly #filter: ChangeFilter;
  readonly #pace: Pace;
  readonly #maxChanged: number;
  #feed: TenantFeed | undefined;
  /** Job → the newest version heard of. */
  #changed = new Map<string, number>();
  #reset = false;
  #failure: { error: unknown } | undefined;

  constructor(
    feeds: Feeds,
    tenant: string,
    options: { filter: ChangeFilter; minIntervalMs: number; maxChanged: number },
  ) {
    this.#feeds = feeds;
    this.#tenant = tenant;
    this.#filter = options.filter;
    this.#pace = new Pace(options.minIntervalMs);
    this.#maxChanged = options.maxChanged;
  }

  async start(wake: () => void): Promise<void> {
    this.#pace.start(wake);
    this.#feed = this.#feeds.join(this.#tenant, this);
    await this.#feed.ready;
  }

  stop(): void {
    this.#pace.stop();
    this.#changed.clear();
    if (this.#feed) this.#feeds.leave(this.#feed, this);
  }

  onChanges(changes: readonly JobChange[]): void {
    try {
      for (const change of changes) this.#note(change);
    } catch (error) {
      this.#failure = { error };
      this.#pace.whenDue();
    }
  }

  reset(): void {
    this.#reset = true;
    this.#changed.clear();
    this.#pace.whenDue();
  }

  poll(): Polled<JobsChanged> | Promise<Polled<JobsChanged>> {
    if (this.#failure) throw this.#failure.error;
    if (this.#pace.stopped) return DONE;
    if (!this.#reset && this.#changed.size === 0) return NOTHING;
    if (!this.#pace.isDue) {
      this.#pace.whenDue();
      return NOTHING;
    }
    this.#pace.sent();
    if (!this.#reset) return this.#read();
    this.#reset = false;
    this.#changed.clear();
    return { value: { jobs: [], reset: true } };
  }

  #note(change: JobChange): void {
    // A reset that is still to come covers it.
    if (this.#reset || this.#filter.change?.(change) === false || !this.#matchesState(change)) return;
    const known = this.#changed.get(change.jobId);
    if (known === undefined && this.#changed.size >= this.#maxChanged) {
      this.reset();
    } else {
      this.#changed.set(change.jobId, Math.max(change.version, known ?? 0));
      this.#pace.whenDue();
    }
  }

  #matchesState({ from, state }: JobChange): boolean {
    const { state: matches } = this.#filter;
    return !matches || matches(state) || (from !== null && matches(from));
  }

  async #read(): Promise<Polled<JobsChanged>> {
    const wanted = [...this.#changed];
    this.#changed.clear();
    try {
      const { readers } = this.#feeds;
      const rows = await Promise.all(
        wanted.map(([jobId, version]) => readers.rowAtLeast({ tenant: this.#tenant, jobId }, version)),
      );
      // A job that is gone cannot be delivered, and must not stay in the list.
      if (rows.includes(null)) this.reset();
      const jobs = rows.filter((row): row is JobRow => row !== null && (this.#filter.row?.(row) ?? true));
      if (jobs.length === 0) return this.poll();
      this.#pace.sent();
      return { value: { jobs, reset: false } };
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      this.#pace.holdOff(AWAY_MS);
      this.reset();
      return NOTHING;
    }
  }
}
